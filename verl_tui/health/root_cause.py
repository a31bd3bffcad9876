"""Why a run died, or what it waits for: the entry of `causes.toml` that its log points to.

All trouble that no step came after is one list, of all processes. What only reports that something
else failed is a consequence; of the rest the first counts, not the most frequent.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.runs.settings import number
from verl_tui.runs.stated_sizes import gpu_count
from verl_tui.runs.views.errors import last_troubles
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table
from verl_tui.words import lowered
from verl_tui.words import number as in_words

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Event, Phase
    from verl_tui.runs.run import Run
    from verl_tui.runs.troubles import Trouble

_LEVELS = {"cause": 0, "symptom": 3, "stop": 3, "report": 5}
"""Kinds of causes, the one that explains most first."""
_UNKNOWN, _UNKNOWN_OF_WORKER, _SURVIVED = 1, 2, 4
"""Among them: exceptions that no entry knows, of the driver and of a worker, which may have caught
it; and trouble of a kind that training went on with before.
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
_DAY = 86400
_SHOWN = 200
"""Characters of a line in a headline."""
_MOST_RANKS = 8
"""Ranks that are named one by one."""


class Remedy(NamedTuple):
    """What to do about a cause, where it applies."""

    say: str
    phase: str
    when: re.Pattern[str] | None
    settings: Sequence[str]
    change: str


class Cause(NamedTuple):
    """An entry of `causes.toml`, which says what its fields mean."""

    id: str
    title: str
    kind: str
    alone: bool
    waiting: bool
    service: bool
    words: Sequence[str]
    forms: Sequence[re.Pattern[str]]
    remedies: Sequence[Remedy]
    line: str


class RootCause(NamedTuple):
    """What a run's end follows from."""

    words: str
    path: str
    """The log that says so."""
    event: Event
    """Its line."""
    advice: str
    kind: str
    """`cause`, `symptom`, `stop`, `report`, or empty for an exception that no entry knows."""
    evidence: Sequence[str]


@cache
def catalogue() -> Sequence[Cause]:
    """Return all causes, in the order of trying."""
    table = toml_table(__file__, "causes.toml")
    return [_cause(id, entry) for id, entry in table.items()]


def _cause(id: str, entry: Mapping[str, Any]) -> Cause:
    return Cause(
        id,
        entry["title"],
        entry["kind"],
        entry.get("alone", False),
        entry.get("waiting", False),
        entry.get("service", False),
        entry["words"],
        [pattern(form) for form in entry["match"]],
        [_remedy(one) for one in entry.get("remedy", ())],
        entry["line"],
    )


def _remedy(entry: Mapping[str, Any]) -> Remedy:
    when = entry.get("when")
    return Remedy(
        entry["say"],
        entry.get("phase", ""),
        None if when is None else pattern(when),
        entry.get("settings", ()),
        str(entry.get("change", "")),
    )


def cause_of(text: str) -> tuple[Cause, re.Match[str]] | None:
    """Return the first cause whose words a line has, with the match; None if none knows it."""
    for cause in catalogue():
        if any(word in text for word in cause.words):
            for form in cause.forms:
                if found := form.search(text):
                    return cause, found
    return None


def fails_service(run: Run, path: str, trouble: Trouble) -> tuple[str, str] | None:
    """Return in words, with advice, that a line says that a service did not answer: a tool, a
    scorer, a server. None if it says something else.
    """
    event = trouble.first
    found = cause_of(event.text)
    if found is None:
        if not _SERVICE.search(event.text):
            return None
        return f"a service fails: {one_line(event.text, _SHOWN)}{_by(event)}", ""
    cause, match = found
    if not cause.service:
        return None
    suspect = _Suspect(0, path, trouble, cause, match)
    words = f"{lowered(_title(suspect))}: {one_line(event.text, _SHOWN)}{_by(event)}"
    return words, _advice(run, suspect, event.phase)


class _Suspect(NamedTuple):
    """A kind of trouble that may be the cause."""

    level: int
    path: str
    trouble: Trouble
    cause: Cause | None
    match: re.Match[str] | None


def root_cause(run: Run, phase: Phase | None = None) -> RootCause | None:
    """Return what a run's end follows from, None if its logs do not say.

    Args:
        run: It has ended, or makes no steps.
        phase: What it was doing then, as far as that is known.
    """
    suspects = [*_suspects(run)]
    first = min(suspects, key=lambda one: one.level, default=None)
    if first is None:
        return None
    event = first.trouble.fresh
    if phase is None or event.phase is not None:
        phase = event.phase
    missing = _missing_ranks(run, [one for one in suspects if one.cause is first.cause])
    title = _title(first)
    said = one_line(event.text, _SHOWN)
    words = f"{lowered(title)}{missing}: {said}" if title else said
    others = sum(one.trouble.count for one in suspects) - 1
    return RootCause(
        f"{words}{_by(event)}",
        first.path,
        event,
        _advice(run, first, phase),
        first.cause.kind if first.cause is not None else "",
        (f"{others:,} more lines of trouble follow from it or came later",)
        if others
        else (),
    )


class Waiting(NamedTuple):
    """What a run waits for, as its log repeats."""

    words: str
    seconds: float | None
    """For how long, None where its lines state no times."""
    times: int
    path: str
    event: Event
    """The first of the lines."""
    advice: str


def waiting(run: Run) -> Waiting | None:
    """Return what a run says again and again since its last step, None if it says nothing so."""
    repeated = list(_repeated(run))
    if not repeated:
        return None
    suspect = max(repeated, key=lambda one: one.trouble.last.line)
    event = suspect.trouble.fresh
    title = lowered(_title(suspect))
    waits = suspect.cause is not None and suspect.cause.waiting
    words = title if waits else f"its log repeats: {title}"
    return Waiting(
        f"{words}: {one_line(event.text, _SHOWN)}{_by(event)}",
        _seconds(suspect),
        suspect.trouble.count,
        suspect.path,
        event,
        _advice(run, suspect, None),
    )


def _seconds(suspect: _Suspect) -> float | None:
    """Return how long lines have been repeated: by their times, else as the last one says."""
    began, last = suspect.trouble.fresh.clock, suspect.trouble.last
    if began is not None and last.clock is not None:
        return float((last.clock - began) % _DAY)
    form = suspect.match.re if suspect.match is not None else None
    if form is None or "waited" not in form.groupindex:
        return None
    found = form.search(last.text)
    return None if found is None else float(found["waited"])


def _repeated(run: Run) -> Iterator[_Suspect]:
    """Yield the trouble of known causes that is said again and again since the last step."""
    for path, trouble in last_troubles(run):
        known = cause_of(trouble.fresh.text) if trouble.count >= _REPEATED else None
        if known is not None and known[0].alone and _LEVELS.get(known[0].kind, 5) < 5:
            yield _Suspect(0, path, trouble, *known)


def _suspects(run: Run) -> Iterator[_Suspect]:
    """Yield the trouble that no step came after, the first first; of a chain of exceptions not the
    lookups that were handled.
    """
    troubles = last_troubles(run)
    handled = _handled([trouble for _, trouble in troubles])
    for path, trouble in troubles:
        found = cause_of(trouble.fresh.text)
        level = _level(trouble.fresh, None if found is None else found[0])
        if level is not None and trouble not in handled:
            level = _survived(trouble, level)
            yield _Suspect(level, path, trouble, *(found or (None, None)))


def _level(event: Event, cause: Cause | None) -> int | None:
    """Return how much trouble explains, 0 most; None if it explains nothing."""
    if cause is None:
        is_exception = event.raised and event.kind is EventKind.TRACEBACK
        unknown = _UNKNOWN_OF_WORKER if event.actor else _UNKNOWN
        return unknown if is_exception else None
    counts = (cause.alone or event.raised) and not cause.waiting
    return _LEVELS.get(cause.kind) if counts else None


def _survived(trouble: Trouble, level: int) -> int:
    """Return the level of trouble, which is lower where training went on with it before."""
    before = trouble.since != trouble.step
    return max(level, _SURVIVED) if before else level


def _handled(troubles: Sequence[Trouble]) -> Sequence[Trouble]:
    """Return the exceptions that others followed from and that say little themselves: lookups that
    were handled, and those without a message.
    """
    found = []
    last: dict[tuple[str, str], Trouble] = {}
    for trouble in troubles:
        event = trouble.fresh
        process = event.actor, event.where
        before = last.get(process)
        if event.chained and before is not None:
            is_lookup = event.chained == "handled" and _LOOKUP.match(before.fresh.text)
            if is_lookup or ":" not in before.fresh.text:
                found.append(before)
        if event.raised:
            last[process] = trouble
    return found


def _title(suspect: _Suspect) -> str:
    if suspect.cause is None or suspect.match is None:
        return ""
    groups = {
        name: one_line(text or "?", 80)
        for name, text in suspect.match.groupdict().items()
    }
    return suspect.cause.title.format_map(groups)


def _by(event: Event) -> str:
    """Name the process that reported a line, if it was not the driver's own."""
    names = " ".join(filter(None, (event.actor, event.where)))
    return f" ({one_line(names)})" if names else ""


def _missing_ranks(run: Run, suspects: Sequence[_Suspect]) -> str:
    """Name the ranks that did not report a collective's time-out: one of them fell silent first."""
    cause = suspects[0].cause
    if cause is None or not cause.id.startswith("collective"):
        return ""
    reported = set().union(*(one.trouble.ranks for one in suspects))
    count = max(*reported, (gpu_count(run.config) or 1) - 1) + 1 if reported else 0
    missing = sorted(set(range(count)) - reported)
    if not missing or len(missing) > len(reported):
        return ""
    names = ", ".join(map(str, missing[:_MOST_RANKS]))
    more = (
        f" and {len(missing) - _MOST_RANKS} more" if len(missing) > _MOST_RANKS else ""
    )
    return f" on {len(reported)} of {count} ranks, rank {names}{more} never reported"


def _advice(run: Run, suspect: _Suspect, phase: Phase | None) -> str:
    """Return what to try, with the settings in force: the first two remedies that apply."""
    event = suspect.trouble.fresh
    if suspect.cause is None:
        where = f" at {event.frame}" if event.frame else ""
        return (
            f"This exception is not in the catalogue: look at the code that raised it{where}, and "
            f"at the lines before line {event.line} of the log."
        )
    doing = phase.words if phase is not None else ""
    remedies = filter(partial(_applies, doing, event.text), suspect.cause.remedies)
    said = [_said(run, remedy) for remedy in remedies]
    new = [words for words, done in said if not done] or [one[0] for one in said[-1:]]
    words = "; or ".join(new[:2])
    return words[:1].upper() + words[1:] + "." if words else ""


def _applies(doing: str, text: str, remedy: Remedy) -> bool:
    if remedy.when is not None and not remedy.when.search(text):
        return False
    return remedy.phase in ("", doing)


def _said(run: Run, remedy: Remedy) -> tuple[str, bool]:
    """Return a remedy in words, with the setting to change, and whether that has been done."""
    if not remedy.settings:
        return remedy.say, False
    stated = run.config.find(remedy.settings)
    if stated is None:
        return remedy.say.replace("{setting}", remedy.settings[0]), False
    key, value = stated
    new = _changed(value, remedy.change)
    if new == str(value):
        return remedy.say.replace("{setting}", f"{key} (it is {value})"), True
    shown = f"{key} {in_words(value) if isinstance(value, float) else value}"
    arrow = f"{shown} → {new}" if new else shown
    return remedy.say.replace("{setting}", arrow), False


def _changed(value: object, change: str) -> str:
    """Return the value to try in place of the one in force, empty if it is not known."""
    if change.startswith("="):
        return change[1:]
    known = number(value)
    if known is None or not change:
        return ""
    if change == "half":
        new = known / 2
    elif change == "double":
        new = known * 2
    else:
        new = known + float(change)
    if float(known).is_integer() and change in ("half", "double"):
        new = float(max(1, int(new)))
    return in_words(round(new, 6))


def line_shown(path: str, event: Event) -> str:
    """Return a line as evidence: its file, number and text."""
    name = one_line(PurePath(path).name, 60)
    text = one_line(event.text, 160)
    return f"{name}:{event.line}: {text}" if name else f"line {event.line}: {text}"
