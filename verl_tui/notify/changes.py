"""Follows findings and states of runs, and reports each once, for the app, the guard and the check
alike.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.notify.message import NAME, Message, of_finding, shown
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.notify.notify_settings import Choice, NotifySettings
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
            unseen = [one for one in findings if not is_seen(run.name, one)]
            sent = self._sent.setdefault(id, {})
            found = [
                *self._raised(id, run, unseen, now),
                *self._cleared(id, run, findings, now),
                *self._of_state(id, run, now),
            ]
            if is_news(run.name):
                messages += found
            else:
                sent.update((one, sent[one]._replace(silent=True)) for one in sent)
        return messages

    def forget(self, message: Message) -> None:
        """Forget that a message was sent: it could not be."""
        id = message.run_id or ""
        sent = self._sent.get(id, {})
        for rule, key in tuple(sent):
            if (rule, shown(key, NAME)) == (message.finding, message.key):
                del sent[rule, key]
        if message.event == "state":
            self._states.pop(id, None)

    def _raised(
        self, id: str, run: Run, found: Sequence[Finding], now: float
    ) -> Iterator[Message]:
        """Yield findings that are new, worse, or due for a reminder."""
        choice = self._settings.choice_for(run.name)
        wanted = (one for one in found if not one.consequence_of)
        for one in filter(choice.wants, wanted):
            last = self._sent[id].get((one.id, one.key))
            known = last is not None and _is_known(last, one)
            due = last is not None and self._is_due(last, now)
            if known and not due:
                continue
            self._sent[id][one.id, one.key] = _Last(one.begun, one.severity, now)
            if due or not self._is_told(id, one, choice, run, now):
                yield of_finding(run.name, one, now, run_id=id, repeated=known)

    def _is_due(self, last: _Last, now: float) -> bool:
        again = self._settings.repeat_after
        return again is not None and not last.silent and now - last.at >= again

    def _is_told(
        self, id: str, one: Finding, choice: Choice, run: Run, now: float
    ) -> bool:
        """Return whether a state was sent that says the same as a finding."""
        same = _SAME.get(one.id)
        told = self._states.get(id) is same and state(run, now) is same
        return same is not None and told and same.value in choice.states

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
                yield self._message(id, run, now)(
                    event="cleared",
                    message=f"the finding is over{at}",
                    finding=rule,
                    key=shown(key, NAME),
                    since_step=last.since,
                )

    def _of_state(self, id: str, run: Run, now: float) -> Iterator[Message]:
        """Yield a new state, if it is wanted and no finding says it."""
        current = state(run, now)
        before = self._states.get(id)
        self._states[id] = current
        said = any(_SAME.get(rule) is current for rule, _ in self._sent[id])
        wanted = current.value in self._settings.choice_for(run.name).states
        if before is current or said or not wanted:
            return
        of = "" if run.total_steps is None else f" of {run.total_steps:,}"
        at = ", without a step" if run.step is None else f" at step {run.step:,}{of}"
        yield self._message(id, run, now)(
            event="state",
            message=f"{current.value}{at}",
            severity=_SEVERITIES.get(current, Severity.INFO),
            state=current.value,
        )

    def _message(self, id: str, run: Run, now: float) -> Callable[..., Message]:
        return partial(
            Message, time=now, run=shown(run.name, NAME), run_id=id, step=run.step
        )

    def as_data(self) -> dict[str, Any]:
        """Return what was sent, for a file."""
        return {
            "findings": [
                [id, *name, *last]
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
            last = _Last(since, Severity(severity), float(at), bool(silent))
            self._sent.setdefault(str(id), {})[str(rule), key] = last
        self._states |= {id: State(value) for id, value in data["states"].items()}


def _is_known(last: _Last, finding: Finding) -> bool:
    """Return whether a finding is the one of the last notification, and no worse."""
    return last.since == finding.begun and last.severity >= finding.severity


def _by_id(runs: Iterable[Run]) -> Iterator[tuple[str, Run]]:
    """Yield runs by their ids; of copies of one run the later ones also by their names."""
    known: set[str] = set()
    for run in runs:
        id = run_id(run)
        yield f"{id} {run.name}" if id in known else id, run
        known.add(id)
