"""The entry to notifications: what changes of findings and states is reported once, for the app,
the guard and the check alike, and goes through the limits to a thread that sends it, so that
nothing waits for a server.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.failures import note_failure
from verl_tui.given_files import (
    NO_LINK,
    UsageError,
    is_link,
    read_given,
    replacing,
    why,
)
from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.notify.delivery import Destination, NotSentError, deliver
from verl_tui.notify.message import (
    NAME,
    Message,
    of_guard,
)
from verl_tui.notify.notify_settings import Choice, Limits, NotifySettings
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.state import State, state
from verl_tui.secrets import shown
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.plain_data import Data
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
        """Id of a run -> its state at the last call."""

    def messages(
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
            known = (
                last is not None
                and last.since == one.begun
                and last.severity >= one.severity
            )
            due = self._is_due(last, now)
            if known and not due:
                continue
            self._sent[id][one.id, one.key] = _Last(one.begun, one.severity, now)
            if due or not self._is_sent_as_state(id, one, choice, run, now):
                say = self._message(id, run, now)
                yield say(event="finding", repeated=known, **_facts(one))

    def _is_due(self, last: _Last | None, now: float) -> bool:
        again = self._settings.repeat_after
        if again is None or not last or last.silent:
            return False
        return now - last.at >= again

    def _is_sent_as_state(
        self, id: str, one: Finding, choice: Choice, run: Run, now: float
    ) -> bool:
        """Return whether a state was sent that says the same as a finding."""
        same = _SAME.get(one.id)
        sent = self._states.get(id) is same and state(run, now) is same
        return same is not None and sent and same.value in choice.states

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

    def as_data(self) -> Data:
        """Return what was sent, for a file."""
        return {
            "findings": [
                [id, *name, *last]
                for id, findings in self._sent.items()
                for name, last in findings.items()
            ],
            "states": {id: one.value for id, one in self._states.items()},
        }

    def restore(self, data: Data) -> None:
        """Continue from an earlier state, as `as_data` returned it.

        Raises:
            KeyError, TypeError, ValueError: The data have another form.
        """
        for id, rule, key, since, severity, at, silent in data["findings"]:
            last = _Last(since, Severity(severity), float(at), bool(silent))
            self._sent.setdefault(str(id), {})[str(rule), key] = last
        self._states |= {id: State(value) for id, value in data["states"].items()}


def _facts(one: Finding) -> Data:
    """Return what a message says of a finding; its evidence stays here, as it may quote the log."""
    return {
        "message": shown(one.message) or "",
        "finding": one.id,
        "key": shown(one.key, NAME),
        "severity": one.severity,
        "step": one.step,
        "since_step": one.since_step,
        "advice": shown(one.advice),
    }


def _by_id(runs: Iterable[Run]) -> Iterator[tuple[str, Run]]:
    """Yield runs by their ids; of copies of one run the later ones also by their names."""
    known: set[str] = set()
    for run in runs:
        id = run_id(run)
        yield f"{id} {run.name}" if id in known else id, run
        known.add(id)


# -- what goes when --------------------------------------------------------------------------------


PATIENCE = 15.0
"""Seconds at the end for what has not been sent: one attempt, and a short wait."""
PAUSES = (2.0, 10.0, 30.0)
"""Seconds between attempts; after the last one a message is given up."""
_MOST = 100
"""Messages that may wait: five hours' worth at the usual limit."""
_KIND = {"kind": "verl-tui notifications", "version": 1}
_LARGEST = 16 * 2**20
"""Bytes of a file with what was sent."""


class Sender:
    """A bounded queue and its thread, which begins with the first message.

    Args:
        deliver: Sends one message or raises NotSentError, whose text may be shown.
        pause: Waits for seconds; by default until the sender is closed at the latest.
        most: Messages that may wait.
    """

    def __init__(
        self,
        deliver: Callable[[Message], object],
        *,
        pause: Callable[[float], object] | None = None,
        most: int = _MOST,
    ) -> None:
        self._deliver = deliver
        self._stop = threading.Event()
        self._pause = pause or self._stop.wait
        self._waiting: Queue[Message | None] = Queue(most)
        """Ends with None."""
        self._open: dict[str, Message] = {}
        """Those that are neither sent nor given up, by their ids."""
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
        self._trouble = ""
        """Why the latest attempt failed; empty once a message was sent."""
        self.unsent: list[Message] = []
        """Messages that were given up."""
        self.problem = ""
        """Why the last of them was given up; empty if none was."""

    def send(self, message: Message) -> None:
        """Have a message sent; never waits. With a full queue it is given up."""
        self._open[message.id] = message
        try:
            self._waiting.put_nowait(message)
        except Full:
            self._settle(message, f"{self._waiting.maxsize} messages wait already")
        if self._thread.ident is None:
            self._thread.start()

    def close(self, patience: float) -> None:
        """Send what waits and end; after so many seconds the rest is given up."""
        if self._thread.ident is not None:
            end = time.monotonic() + patience
            with suppress(Full):
                self._waiting.put(None, timeout=patience)
            self._thread.join(max(0.0, end - time.monotonic()))
        self._stop.set()
        for one in tuple(self._open.values()):
            self._settle(one, self._trouble or f"not sent within {patience:g} s")

    def _run(self) -> None:
        while message := self._waiting.get():
            for pause in (0.0, *PAUSES):
                if pause:
                    self._pause(pause)
                if self._stop.is_set():
                    return
                if not self._attempted(message):
                    break
            self._settle(message, self._trouble)

    def _attempted(self, message: Message) -> bool:
        """Try once; return whether another attempt may succeed."""
        trouble, passing = "", False
        try:
            self._deliver(message)
        except NotSentError as error:
            trouble, passing = str(error), error.passing
        except Exception as error:  # noqa: BLE001 - whatever fails here must not end the thread
            trouble = f"failed: {note_failure('sending', error)}"
        self._trouble = trouble
        return passing

    def _settle(self, message: Message, trouble: str) -> None:
        """Count a message as sent, or as given up; only the first call counts."""
        if self._open.pop(message.id, None) and trouble:
            self.unsent.append(message)
            self.problem = trouble


class Notifier:
    """Reports what happens to runs; never waits for a server except when it closes.

    Args:
        settings: The user's wishes.
        to: Where messages go.
        sender: Sends the messages; by default to their destination.
    """

    def __init__(
        self,
        settings: NotifySettings,
        to: Destination,
        *,
        sender: Sender | None = None,
    ) -> None:
        self.changes = Changes(settings)
        self.limits = Limits(settings)
        self.sender = sender or Sender(partial(deliver, to))
        self._guard = settings.guard
        self._failure = ""
        """The last error of ours."""
        self._reported = ("", 0)
        """The last error of ours, and the number of unsent messages, that were reported."""

    def send_changes(
        self,
        monitor: Monitor,
        now: float,
        *filters: Callable[..., bool],
    ) -> None:
        """Send what changed since the last call, see `Changes.messages`, which takes the
        filters; an error of ours is reported as such.
        """
        try:
            self._send(self.changes.messages(monitor, now, *filters), now)
        except Exception as error:  # noqa: BLE001 - whoever watches goes on watching
            self._failure = f"notifications fail: {note_failure('notifying', error)}"

    def tell(self, event: Data, now: float) -> None:
        """Send one of the guard's events, if the user wants that."""
        if event["event"] in self._guard:
            self._send((of_guard(event, now),), now)

    def news(self) -> str:
        """Return a sentence on what could not be sent since the last call, else ''."""
        before, self._reported = (
            self._reported,
            (self._failure, len(self.sender.unsent)),
        )
        failure, unsent = self._reported
        parts = [failure] if failure != before[0] else []
        if unsent != before[1]:
            why = self.sender.problem
            parts.append(f"{counted(unsent, 'notification')} could not be sent: {why}")
        return "; ".join(parts)

    @property
    def failing(self) -> str:
        """A few words on messages that could not be sent so far; empty if all could."""
        unsent = len(self.sender.unsent)
        if unsent:
            return f"{unsent} unsent"
        return "notifications fail" * bool(self._failure)

    def close(
        self, patience: float = PATIENCE, *, keeps_held: bool = False
    ) -> Sequence[str]:
        """Send what waits; return sentences on all that was not sent.

        Args:
            patience: Seconds that it may take.
            keeps_held: Whether messages that are held back will be summed up later.
        """
        self.sender.close(patience)
        for message in self.sender.unsent:
            self.changes.forget(message)
            self.limits.take_back(message)
        self._reported = (self._reported[0], 0)  # said again where it stays to be read
        problems = [self.news()]
        held = 0 if keeps_held else self.limits.waiting
        if held:
            why = "held back by quiet hours or the hourly limit, and not sent"
            problems.append(f"{counted(held, 'notification')} {why}")
        return list(filter(None, problems))

    def _send(self, messages: Sequence[Message], now: float) -> None:
        for message in self.limits.due(messages, now):
            self.sender.send(message)

    def read_state(self, path: Path) -> None:
        """Continue from a file, if there is one.

        Raises:
            UsageError: It cannot be read, or holds something else, and is left alone.
        """
        try:
            if is_link(path):
                raise UsageError(f"{path}: {NO_LINK}")
            self._take(json.loads(read_given(path, _LARGEST)))
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"{path}: {why(error)}") from error
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            other = "is not a file that `check --state` wrote: name another one, or remove it"
            raise UsageError(f"{path}: {other}") from None

    def _take(self, data: Data) -> None:
        if not data.items() >= _KIND.items():
            raise ValueError
        self.changes.restore(data)
        self.limits.sent = [float(time) for time in data["sent"]]
        held = data["held_back"].items()
        self.limits.held = Counter({str(one): int(times) for one, times in held})
        self.limits.worst = Severity(data["worst"])

    def write_state(self, path: Path) -> None:
        """Replace the file as a whole; nobody else may read it.

        Raises:
            OSError: It cannot be written.
        """
        limits = self.limits
        kept = {"sent": limits.sent, "held_back": limits.held, "worst": limits.worst}
        with replacing(path, rights=0o600) as file:
            json.dump({**_KIND, **self.changes.as_data(), **kept}, file)
