"""Why a run died, what it waits for, which service fails: the entry of `causes.toml` that its log
points to.

All trouble that no step came after is one list, of all processes. What only reports that something
else failed is a consequence; of the rest the first counts, not the most frequent.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.rule_context import minutes
from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Phase
from verl_tui.runs.settings import gpu_count, number
from verl_tui.runs.views.signs_of_life import last_troubles
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted, lowered
from verl_tui.words import number as in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import Trouble

_LEVELS = {"cause": 0, "symptom": 3, "stop": 3, "report": 5, "head": 6}
"""Kinds of causes, the one that explains most first."""
_UNKNOWN, _UNKNOWN_OF_WORKER, _SURVIVED = 1, 2, 4
"""Among them: exceptions that no entry knows or that any code raises, of the driver and of a
worker, which may have caught it; and trouble of a kind that training went on with before.
"""
_LOOKUP = pattern(
    r"^(?:KeyError|AttributeError|StopIteration|ImportError|ModuleNotFoundError)\b"
)
"""Exceptions that are often handled by trying something else."""
_REPEATED = 5
"""Lines of one kind since the last step that make a wait: heuristic."""
_SERVICE = pattern(
    r"(?i)\b(?:tools?|tool[_ ]?calls?|sandbox\w*|retriev\w+|search|browser|interpreter|judge|"
    r"verifier|environment|env|(?:reward|scor)\w*|api|endpoint|service)\b"
    r".{0,80}\b(?:fail(?:ed|ure|s)?|"
    r"timed? ?out|refused|unavailable|unreachable|not respond\w*|no (?:answer|response)|50[0234])\b"
)
"""Lines that no entry knows in which something that rollouts or scores depend on fails."""
_FACTORS = {"half": 0.5, "double": 2.0}
"""Changes of a setting that multiply its value; others are added to it."""
_DAY = 86400
_SHOWN = 200
"""Characters of a line in a headline."""
_MOST_RANKS = 8
"""Ranks that are named one by one."""


class Remedy(NamedTuple):
    """What to do about a cause, where it applies."""

    say: str
    phase: str = ""
    when: str = ""
    settings: Sequence[str] = ()
    change: str = ""


class Cause(NamedTuple):
    """An entry of `causes.toml`, which says what its fields mean."""

    id: str
    title: str
    kind: str
    words: Sequence[str]
    match: Sequence[re.Pattern[str]]
    line: str
    source: str
    alone: bool = False
    waiting: bool = False
    service: bool = False
    remedy: Sequence[Remedy] = ()


_ANY_SERVICE = Cause(
    "service", "a service fails", "", (), (_SERVICE,), "", "", service=True
)
"""A failing service that no entry knows."""


class RootCause(NamedTuple):
    """What a run's end, its waiting or the fall of its reward follows from."""

    words: str
    advice: str
    kind: str
    """That of its entry, empty for an exception that no entry knows."""
    path: str
    """The log that says so."""
    event: Event
    """Its line."""
    times: int
    """How many such lines there are."""
    others: str = ""
    """How many more lines of trouble there are."""
    seconds: float | None = None
    """For how long the log repeats it, None where its lines state no times."""
    title: str = ""
    """What an expert calls it, else what the line says."""

    @property
    def is_certain(self) -> bool:
        """True if it can end a run or hold it up."""
        return self.kind in ("cause", "symptom")

    @property
    def headline(self) -> str:
        """What a run waits for, and for how long."""
        return (f"{minutes(self.seconds)}: " if self.seconds else "") + self.title

    @property
    def line(self) -> str:
        """The line as evidence."""
        return line_shown(self.path, self.event)


class _Suspect(NamedTuple):
    """A kind of trouble that may be the cause, by one of its lines."""

    path: str
    trouble: Trouble
    event: Event
    cause: Cause
    match: re.Match[str] | None

    @property
    def title(self) -> str:
        """What the cause is called, empty where no entry knows it."""
        groups = self.match.groupdict().items() if self.match else ()
        shown = {name: one_line(text or "?", 80) for name, text in groups}
        return lowered(self.cause.title.format_map(shown))


@cache
def catalogue() -> Sequence[Cause]:
    """Return all causes, in the order of trying."""
    return [
        Cause(
            id,
            **entry
            | {
                "match": [pattern(form) for form in entry["match"]],
                "remedy": [Remedy(**one) for one in entry.get("remedy", ())],
            },
        )
        for id, entry in toml_table(__file__, "causes.toml").items()
    ]


def cause_of(text: str) -> tuple[Cause, re.Match[str]] | None:
    """Return the first cause whose words a line has, with the match; None if none knows it."""
    for cause in catalogue():
        if any(word in text for word in cause.words):
            for form in cause.match:
                if found := form.search(text):
                    return cause, found
    return None


def fails_service(run: Run, path: str, trouble: Trouble) -> RootCause | None:
    """Return the cause if a kind of line says that a service (a tool, a scorer, a server) did not
    answer, else None.
    """
    event = trouble.first
    cause, match = cause_of(event.text) or (_ANY_SERVICE, _SERVICE.search(event.text))
    if not match or not cause.service:
        return None
    suspect = _Suspect(path, trouble, event, cause, match)
    return _cause_by(run, suspect, event.phase, suspect.title)


def root_cause(run: Run, phase: Phase | None = None) -> RootCause | None:
    """Return what a run's end follows from, None if its logs do not say.

    Args:
        run: It has ended, or makes no steps.
        phase: What it was doing then, as far as that is known.
    """
    suspects = [*_suspects(run)]
    if not suspects:
        return None
    _, first = min(suspects, key=lambda one: one[0])
    alike = [one for _, one in suspects if one.cause is first.cause]
    title = first.title + _missing_ranks(run, alike)
    found = _cause_by(run, first, first.event.phase or phase, title)
    others = sum(one.trouble.count for _, one in suspects) - 1
    said = f"{counted(others, 'more line')} of trouble"
    words = f"{said} follow{'s' * (others == 1)} from it or came later"
    return found._replace(others=words) if others else found


def waiting(run: Run) -> RootCause | None:
    """Return what a run says again and again since its last step, None if it repeats nothing."""
    repeated = []
    for path, trouble in last_troubles(run):
        event = trouble.fresh
        known = cause_of(event.text) if trouble.count >= _REPEATED else None
        if known and known[0].alone and _LEVELS.get(known[0].kind, 5) < 5:
            repeated.append(_Suspect(path, trouble, event, *known))
    suspect = max(repeated, key=lambda one: one.trouble.last.line, default=None)
    if not suspect:
        return None
    title = suspect.title
    if not suspect.cause.waiting:
        title = f"its log repeats: {title}"
    return _cause_by(run, suspect, None, title)._replace(seconds=_seconds(suspect))


def _seconds(suspect: _Suspect) -> float | None:
    """Return how long lines have been repeated: by their times, else as the last one says."""
    began, last = suspect.event.clock, suspect.trouble.last
    if began is not None and last.clock is not None:
        return float((last.clock - began) % _DAY)
    said = suspect.match and suspect.match.re.search(last.text)
    return float(said["waited"]) if said and "waited" in said.groupdict() else None


def _cause_by(
    run: Run, suspect: _Suspect, phase: Phase | None, title: str
) -> RootCause:
    """Return what a suspect's line says, behind what an expert calls it."""
    event = suspect.event
    where = "the traceback's last call"
    if event.frame:
        where = f"{event.frame}, which raised it,"
    names = " ".join(filter(None, (event.actor, event.where)))
    said = one_line(event.text, _SHOWN) + (f" ({one_line(names)})" if names else "")
    return RootCause(
        f"{title}: {said}" if title else said,
        _advice(run, suspect, phase).replace("{frame}", where),
        suspect.cause.kind,
        suspect.path,
        event,
        suspect.trouble.count,
        title=title or one_line(event.text, _SHOWN),
    )


def _suspects(run: Run) -> Iterator[tuple[int, _Suspect]]:
    """Yield the trouble that no step came after with its level, the oldest first; of a chain of
    exceptions not the lookups that were handled.
    """
    troubles = last_troubles(run)
    handled = _handled([trouble for _, trouble in troubles])
    for path, trouble in troubles:
        event = trouble.fresh
        found = cause_of(event.text)
        level = _level(event, found and found[0])
        if level is not None and trouble not in handled:
            if trouble.since != trouble.step:  # it went on
                level = max(level, _SURVIVED)
            cause, match = found or (_unknown(event), None)
            yield level, _Suspect(path, trouble, event, cause, match)


def _unknown(event: Event) -> Cause:
    """Return the cause of an exception that no entry knows."""
    look = (
        f"look at {{frame}} and at the lines before line {event.line} of the log: this exception "
        f"is not in the catalogue"
    )
    return Cause("", "", "", (), (), "", "", remedy=[Remedy(look)])


def _level(event: Event, cause: Cause | None) -> int | None:
    """Return how much trouble explains, 0 most; None if it explains nothing."""
    if not cause or cause.kind == "code":
        if event.raised and event.kind is EventKind.TRACEBACK:
            return _UNKNOWN_OF_WORKER if event.actor else _UNKNOWN
        return None
    counts = (cause.alone or event.raised) and not cause.waiting
    return _LEVELS.get(cause.kind) if counts else None


def _handled(troubles: Sequence[Trouble]) -> Sequence[Trouble]:
    """Return the exceptions that others followed from and that say little themselves: lookups that
    were handled, and those without a message.
    """
    found = []
    last: dict[tuple[str, str], Trouble] = {}
    for trouble in troubles:
        event = trouble.fresh
        before = last.get((event.actor, event.where))
        if event.chained and before:
            text = before.fresh.text
            is_lookup = event.chained == "handled" and _LOOKUP.match(text)
            if is_lookup or ":" not in text:
                found.append(before)
        if event.raised:
            last[event.actor, event.where] = trouble
    return found


def _missing_ranks(run: Run, suspects: Sequence[_Suspect]) -> str:
    """Name the ranks that did not report a collective's time-out: one of them fell silent first."""
    reported = set().union(*(one.trouble.ranks for one in suspects))
    if not suspects[0].cause.id.startswith("collective") or not reported:
        return ""
    count = max(*reported, (gpu_count(run.config) or 1) - 1) + 1
    missing = sorted(set(range(count)) - reported)
    if not missing or len(missing) > len(reported):
        return ""
    names = ", ".join(map(str, missing[:_MOST_RANKS]))
    more = ", …" if len(missing) > _MOST_RANKS else ""
    return f" on {len(reported)} of {count} ranks, rank {names}{more} never reported"


def _advice(run: Run, suspect: _Suspect, phase: Phase | None) -> str:
    """Return what to try, with the settings in force: the first two remedies that apply."""
    remedies, spelling = list(_remedies(suspect, phase)), 0
    if run.keys and run.dialect == "other":
        remedies, spelling = _stated(run, remedies) or remedies[-1:], -1
    said = [_said(run, remedy, spelling) for remedy in remedies]
    new = [one for one in said if not one[1]] or said[-1:]
    words = "; or ".join(one for one, _ in new[:2])
    return words[:1].upper() + words[1:] + "." if words else ""


def _remedies(suspect: _Suspect, phase: Phase | None) -> Iterator[Remedy]:
    """Yield the remedies of a cause that apply."""
    doing = phase.words if phase else ""
    for remedy in suspect.cause.remedy:
        if remedy.phase in ("", doing) and re.search(remedy.when, suspect.event.text):
            yield remedy


def _stated(run: Run, remedies: Sequence[Remedy]) -> list[Remedy]:
    """Return the remedies that change no setting, or one that a run states: another trainer than
    verl may not have the others.
    """
    return [
        one for one in remedies if not one.settings or run.config.find(one.settings)
    ]


def _said(run: Run, remedy: Remedy, spelling: int) -> tuple[str, bool]:
    """Return a remedy in words, with the setting to change, by its n-th spelling where the run does
    not state it, and whether that has been done.
    """
    shown, is_done = remedy.settings[spelling] if remedy.settings else "", False
    stated = run.config.find(remedy.settings)
    if stated:
        key, value = stated
        new = _changed(value, remedy.change)
        is_done = new == str(value)
        now = in_words(value) if isinstance(value, float) else value
        to = new and f" → {new}"
        shown = f"{key} (it is {value})" if is_done else f"{key} {now}{to}"
        if value is None:
            shown = key
    return remedy.say.replace("{setting}", shown), is_done


def _changed(value: object, change: str) -> str:
    """Return the value to try in place of the one in force, empty if it is not known."""
    if change.startswith("="):
        return change[1:]
    known = number(value)
    if known is None or not change:
        return ""
    factor = _FACTORS.get(change)
    new = known + float(change) if factor is None else known * factor
    if factor is not None and float(known).is_integer():
        new = float(max(1, int(new)))
    return in_words(round(new, 6))


def line_shown(path: str, event: Event) -> str:
    """Return a line as evidence: its file, number and text."""
    name = one_line(PurePath(path).name, 60)
    text = one_line(event.text, 160)
    return f"{name}:{event.line}: {text}" if name else f"line {event.line}: {text}"
