"""Follows findings and states of runs, and reports each once, for the app, the guard and the check
alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Severity, Verdict
from verl_tui.notify.message import Message, of_finding, safe_key, safe_name
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.monitor import Monitor
    from verl_tui.notify.notify_settings import Choice, NotifySettings
    from verl_tui.runs.run import Run

_Name = tuple[str, str | None]
"""Rule and metric, which identify a finding of a run while its numbers change."""

_SAME = {"crash": State.CRASHED, "hang": State.STALLED}
"""Finding -> the state that says the same: one of the two is sent."""
_SEVERITIES = {State.CRASHED: Severity.CRITICAL, State.STALLED: Severity.WARNING}
"""Severity of a state; of the others it is info."""


@dataclass(slots=True)
class _LastMessage:
    """The last notification about a finding."""

    since: int | None
    severity: Severity
    at: float
    silent: bool
    """True if it was there before anything was to be sent."""

    def is_other(self, finding: Finding) -> bool:
        """Return whether a finding of this name is another one, or a worse one."""
        return self.since != finding.since_step or finding.severity > self.severity

    def is_due(self, now: float, again: float | None) -> bool:
        """Return whether a reminder is due, `again` seconds after the last message."""
        return again is not None and not self.silent and now - self.at >= again


class Changes:
    """Remembers the messages on runs, so that only changes are reported again.

    A finding that comes again at another step, or gets worse, counts as new.
    """

    def __init__(self, settings: NotifySettings) -> None:
        self._settings = settings
        self._sent: dict[str, dict[_Name, _LastMessage]] = {}
        """Id of a run -> the last messages about its findings. Its name may change."""
        self._states: dict[str, tuple[str, int | None]] = {}
        """Id of a run -> its state at the last look, and the step."""

    def look(
        self,
        monitor: Monitor,
        now: float,
        is_news: Callable[[str], bool] = lambda _run: True,
        is_seen: Callable[[str, Finding], bool] = lambda _run, _finding: False,
    ) -> Sequence[Message]:
        """Return the messages that are due on runs as they were judged last.

        Args:
            monitor: Has read and judged.
            now: Seconds since the epoch.
            is_news: Whether the present findings of a run are news; if not, they are remembered as
                known.
            is_seen: Whether the user has acknowledged a finding of a run: it is not sent.
        """
        messages: list[Message] = []
        for id, run in _by_id(monitor.runs.values()):
            verdict = monitor.verdicts.get(run.name, Verdict())
            found = [*self._of_run(id, run, verdict, now, is_seen)]
            if is_news(run.name):
                messages += found
            else:
                self._silence(id)
        return messages

    def forget(self, message: Message) -> None:
        """Forget that a message was sent: it could not be."""
        id = message.run_id or ""
        sent = self._sent.get(id, {})
        for name in [name for name in sent if _is_of(message, name)]:
            del sent[name]
        if message.event == "state":
            self._states.pop(id, None)

    def _of_run(
        self,
        id: str,
        run: Run,
        verdict: Verdict,
        now: float,
        is_seen: Callable[[str, Finding], bool],
    ) -> Iterator[Message]:
        choice = self._settings.choice_for(run.name)
        current = state(run, now)
        for finding in verdict.primary:
            wanted = choice.wants(finding.id, finding.severity)
            if wanted and not is_seen(run.name, finding):
                yield from self._of_finding(id, run, finding, current, now)
        yield from self._cleared(id, run, verdict.findings, choice, now)
        yield from self._of_state(id, run, current, choice, now)

    def _of_finding(
        self, id: str, run: Run, finding: Finding, current: State, now: float
    ) -> Iterator[Message]:
        sent = self._sent.setdefault(id, {})
        name = (finding.id, finding.key)
        known = sent.get(name)
        is_new = known is None or known.is_other(finding)
        is_due = known is not None and known.is_due(now, self._settings.repeat_after)
        if not is_new and not is_due:
            return
        sent[name] = _LastMessage(
            finding.since_step, finding.severity, now, silent=False
        )
        by_state = _SAME.get(finding.id) is current and self._was_sent(id, run, current)
        if is_due or not by_state:
            yield of_finding(run.name, finding, now, run_id=id, repeated=not is_new)

    def _was_sent(self, id: str, run: Run, current: State) -> bool:
        known = self._states.get(id)
        if known is None or known[0] != current.value:
            return False
        return current.value in self._settings.choice_for(run.name).states

    def _cleared(
        self, id: str, run: Run, findings: Sequence[Finding], choice: Choice, now: float
    ) -> Iterator[Message]:
        sent = self._sent.get(id, {})
        present = {(one.id, one.key) for one in findings}
        for name in [one for one in sent if one not in present]:
            known = sent[name]
            if known.since is None or choice.cleared:
                # a step distinguishes other findings from those that blink
                del sent[name]
            if choice.cleared and not known.silent:
                yield replace(_over(run, name, known.since, now), run_id=id)

    def _of_state(
        self, id: str, run: Run, current: State, choice: Choice, now: float
    ) -> Iterator[Message]:
        known = self._states.get(id)
        if known is not None and known[0] == current.value:
            return
        self._states[id] = (current.value, run.step)
        if current.value not in choice.states:
            return
        if any(_SAME.get(rule) is current for rule, _ in self._sent.get(id, ())):
            return
        yield Message(
            "state",
            now,
            _in_words(run, current),
            run=safe_name(run.name),
            run_id=id,
            severity=_SEVERITIES.get(current, Severity.INFO),
            state=current.value,
            step=run.step,
        )

    def _silence(self, id: str) -> None:
        for sent in self._sent.get(id, {}).values():
            sent.silent = True

    def as_data(self) -> dict[str, Any]:
        """Return what was sent, for a file."""
        sent = []
        for id, findings in self._sent.items():
            for name, last in findings.items():
                severity = int(last.severity)
                sent.append([id, *name, last.since, severity, last.at, last.silent])
        states = {id: list(known) for id, known in self._states.items()}
        return {"findings": sent, "states": states}

    def take(self, data: Mapping[str, Any]) -> None:
        """Continue from an earlier state, as `as_data` returned it.

        Raises:
            KeyError, TypeError, ValueError: The data have another form.
        """
        for id, rule, key, since, severity, at, silent in data["findings"]:
            name = (str(rule), None if key is None else str(key))
            first = None if since is None else int(since)
            known = _LastMessage(first, Severity(severity), float(at), bool(silent))
            self._sent.setdefault(str(id), {})[name] = known
        for id, (value, step) in data["states"].items():
            reached = None if step is None else int(step)
            self._states[id] = (State(value).value, reached)


def _by_id(runs: Iterable[Run]) -> Iterator[tuple[str, Run]]:
    """Yield runs by their ids; of copies of one run the later ones also by their names."""
    known: set[str] = set()
    for run in runs:
        id = run_id(run)
        yield f"{id} {run.name}" if id in known else id, run
        known.add(id)


def _over(run: Run, name: _Name, since: int | None, now: float) -> Message:
    """Return the message that a finding is over."""
    id, key = name
    at = "" if run.step is None else f" at step {run.step:,}"
    return Message(
        "cleared",
        now,
        f"the finding is over{at}",
        run=safe_name(run.name),
        finding=id,
        key=safe_key(key),
        step=run.step,
        since_step=since,
    )


def _is_of(message: Message, name: _Name) -> bool:
    id, key = name
    return (message.finding, message.key) == (id, safe_key(key))


def _in_words(run: Run, current: State) -> str:
    """Return a sentence on a state."""
    if run.step is None:
        return f"{current.value}, without a step"
    of = "" if run.total_steps is None else f" of {run.total_steps:,}"
    return f"{current.value} at step {run.step:,}{of}"
