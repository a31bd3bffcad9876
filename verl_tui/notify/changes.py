"""Follows findings and states of runs, and reports each once, for the app, the guard and the check
alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Severity, Verdict
from verl_tui.notify.message import Message, of_finding, safe_key, safe_name
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.monitor import Monitor
    from verl_tui.notify.notify_settings import NotifySettings
    from verl_tui.runs.run import Run

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
    silent: bool = False
    """True if it was there before anything was to be sent."""

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding of this name is the same one, and no worse."""
        return self.since == finding.since_step and self.severity >= finding.severity

    def is_due(self, now: float, again: float | None) -> bool:
        """Return whether a reminder is due, `again` seconds after the last message."""
        return again is not None and not self.silent and now - self.at >= again


class Changes:
    """Remembers the messages on runs, so that only changes are reported again.

    A finding that comes again at another step, or gets worse, counts as new.
    """

    def __init__(self, settings: NotifySettings) -> None:
        self._settings = settings
        self._sent: dict[str, dict[tuple[str, str | None], _LastMessage]] = {}
        """Id of a run, whose name may change -> rule and metric of a finding, whose numbers may ->
        the last message.
        """
        self._states: dict[str, State] = {}
        """Id of a run -> its state at the last look."""

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
            choice = self._settings.choice_for(run.name)
            wanted = [
                one
                for one in verdict.primary
                if choice.wants(one.id, one.severity) and not is_seen(run.name, one)
            ]
            current = state(run, now)
            found = [
                *self._raised(id, run, wanted, current, now),
                *self._cleared(id, run, verdict.findings, now),
                *self._of_state(id, run, current, now),
            ]
            if is_news(run.name):
                messages += found
            else:
                for last in self._sent.get(id, {}).values():
                    last.silent = True
        return messages

    def forget(self, message: Message) -> None:
        """Forget that a message was sent: it could not be."""
        id = message.run_id or ""
        sent = self._sent.get(id, {})
        for rule, key in tuple(sent):
            if (rule, safe_key(key)) == (message.finding, message.key):
                del sent[rule, key]
        if message.event == "state":
            self._states.pop(id, None)

    def _raised(
        self, id: str, run: Run, found: Sequence[Finding], current: State, now: float
    ) -> Iterator[Message]:
        """Yield findings that are new, worse, or due for a reminder."""
        choice = self._settings.choice_for(run.name)
        again = self._settings.repeat_after
        sent = self._sent.setdefault(id, {})
        was_sent = self._states.get(id) is current and current.value in choice.states
        for finding in found:
            last = sent.get((finding.id, finding.key))
            is_known = last is not None and last.covers(finding)
            is_due = last is not None and last.is_due(now, again)
            if is_known and not is_due:
                continue
            sent[finding.id, finding.key] = _LastMessage(
                finding.since_step, finding.severity, now
            )
            by_state = was_sent and _SAME.get(finding.id) is current
            if is_due or not by_state:
                yield of_finding(run.name, finding, now, run_id=id, repeated=is_known)

    def _cleared(
        self, id: str, run: Run, findings: Iterable[Finding], now: float
    ) -> Iterator[Message]:
        """Yield findings that are over, if that is wanted."""
        cleared = self._settings.choice_for(run.name).cleared
        sent = self._sent[id]
        present = {(one.id, one.key) for one in findings}
        for rule, key in [name for name in sent if name not in present]:
            last = sent[rule, key]
            if last.since is None or cleared:
                # a step distinguishes other findings from those that blink
                del sent[rule, key]
            if cleared and not last.silent:
                at = "" if run.step is None else f" at step {run.step:,}"
                yield Message(
                    "cleared",
                    now,
                    f"the finding is over{at}",
                    run=safe_name(run.name),
                    run_id=id,
                    finding=rule,
                    key=safe_key(key),
                    step=run.step,
                    since_step=last.since,
                )

    def _of_state(
        self, id: str, run: Run, current: State, now: float
    ) -> Iterator[Message]:
        """Yield a new state, if it is wanted and no finding says it."""
        if self._states.get(id) is current:
            return
        self._states[id] = current
        if current.value not in self._settings.choice_for(run.name).states:
            return
        if any(_SAME.get(rule) is current for rule, _ in self._sent[id]):
            return
        of = "" if run.total_steps is None else f" of {run.total_steps:,}"
        at = ", without a step" if run.step is None else f" at step {run.step:,}{of}"
        yield Message(
            "state",
            now,
            f"{current.value}{at}",
            run=safe_name(run.name),
            run_id=id,
            severity=_SEVERITIES.get(current, Severity.INFO),
            state=current.value,
            step=run.step,
        )

    def as_data(self) -> dict[str, Any]:
        """Return what was sent, for a file."""
        return {
            "findings": [
                [id, *name, last.since, int(last.severity), last.at, last.silent]
                for id, findings in self._sent.items()
                for name, last in findings.items()
            ],
            "states": {id: one.value for id, one in self._states.items()},
        }

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
        for id, value in data["states"].items():
            self._states[id] = State(value)


def _by_id(runs: Iterable[Run]) -> Iterator[tuple[str, Run]]:
    """Yield runs by their ids; of copies of one run the later ones also by their names."""
    known: set[str] = set()
    for run in runs:
        id = run_id(run)
        yield f"{id} {run.name}" if id in known else id, run
        known.add(id)
