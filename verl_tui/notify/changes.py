"""Follows findings and states of runs, and reports each once, for the app, the guard and the check
alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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


class _Last(NamedTuple):
    """The last notification about a finding."""

    since: int | None
    severity: Severity
    at: float
    silent: bool = False
    """True if it was there before anything was to be sent."""


def _known(
    last: _Last | None, finding: Finding, now: float, again: float | None
) -> tuple[bool, bool]:
    """Return whether a finding is the one of the last notification, and no worse; and whether a
    reminder is due, `again` seconds after it.
    """
    if last is None:
        return False, False
    same = last.since == finding.since_step and last.severity >= finding.severity
    return same, again is not None and not last.silent and now - last.at >= again


class Changes:
    """Remembers the messages on runs, so that only changes are reported again.

    A finding that comes again at another step, or gets worse, counts as new.
    """

    def __init__(self, settings: NotifySettings) -> None:
        self._settings = settings
        self._sent: dict[str, dict[tuple[str, str | None], _Last]] = {}
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
            findings = monitor.verdicts.get(run.name, Verdict()).findings
            choice = self._settings.choice_for(run.name)
            wanted = [
                one
                for one in findings
                if one.consequence_of is None
                and choice.wants(one.id, one.severity)
                and not is_seen(run.name, one)
            ]
            current = state(run, now)
            found = [
                *self._raised(id, run.name, wanted, current, now),
                *self._cleared(id, run, findings, now),
                *self._of_state(id, run, current, now),
            ]
            if is_news(run.name):
                messages += found
            else:
                known = self._sent[id]
                known.update(
                    (name, known[name]._replace(silent=True)) for name in known
                )
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
        self, id: str, name: str, found: Sequence[Finding], current: State, now: float
    ) -> Iterator[Message]:
        """Yield findings that are new, worse, or due for a reminder."""
        again = self._settings.repeat_after
        sent = self._sent.setdefault(id, {})
        told = self._states.get(id) is current
        told &= current.value in self._settings.choice_for(name).states
        for one in found:
            known, due = _known(sent.get((one.id, one.key)), one, now, again)
            if known and not due:
                continue
            sent[one.id, one.key] = _Last(one.since_step, one.severity, now)
            by_state = told and _SAME.get(one.id) is current
            if due or not by_state:
                yield of_finding(name, one, now, run_id=id, repeated=known)

    def _cleared(
        self, id: str, run: Run, findings: Sequence[Finding], now: float
    ) -> Iterator[Message]:
        """Yield findings that are over, if that is wanted."""
        wanted = self._settings.choice_for(run.name).cleared
        sent = self._sent[id]
        for rule, key in sent.keys() - {(one.id, one.key) for one in findings}:
            last = sent[rule, key]
            if last.since is None or wanted:
                # a step distinguishes other findings from those that blink
                del sent[rule, key]
            if wanted and not last.silent:
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
        before = self._states.get(id)
        self._states[id] = current
        said = any(_SAME.get(rule) is current for rule, _ in self._sent[id])
        wanted = current.value in self._settings.choice_for(run.name).states
        if before is current or said or not wanted:
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
            known = _Last(first, Severity(severity), float(at), bool(silent))
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
