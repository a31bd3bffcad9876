"""The entry to notifications: changes go through the limits to the sender."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.health.finding import Severity
from verl_tui.notify.changes import Changes
from verl_tui.notify.delivery import deliver
from verl_tui.notify.message import Message, safe_message, safe_name
from verl_tui.notify.rate_limiter import RateLimiter
from verl_tui.notify.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.monitor import Monitor
    from verl_tui.notify.destination import Destination
    from verl_tui.notify.notify_settings import NotifySettings

PATIENCE = 15.0
"""Seconds at the end for what has not been sent: one attempt, and a short wait."""


class Notifier:
    """Reports what happens to runs; never waits for a server except when it closes."""

    def __init__(
        self,
        settings: NotifySettings,
        to: Destination,
        *,
        clock: Callable[[], float],
        sender: Sender | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            settings: The user's wishes.
            to: Where messages go.
            clock: Seconds since the epoch.
            sender: Sends the messages; by default to their destination.
        """
        self.to = to
        self.changes = Changes(settings)
        self.limits = limits_of(settings)
        self.sender = (
            sender if sender is not None else Sender(partial(deliver, to, clock=clock))
        )
        self._guard = settings.guard
        self._failure = self._reported = ""
        """The last error of ours, and the last one that was reported."""
        self._said = 0
        """Unsent messages that were reported."""

    @property
    def greeting(self) -> str:
        """The first sentence, which says that only new findings are sent."""
        return "notifications are on, for what is new from now"

    def look(
        self,
        monitor: Monitor,
        now: float,
        is_news: Callable[[str], bool] = lambda _run: True,
        is_seen: Callable[[str, Finding], bool] = lambda _run, _finding: False,
    ) -> None:
        """Send what changed since the last look, see `Changes.look`; an error of ours is reported
        as such.
        """
        try:
            self._send(self.changes.look(monitor, now, is_news, is_seen), now)
        except Exception as error:  # noqa: BLE001 - whoever watches goes on watching
            debug_log.note_error("notifying", error)
            self._failure = f"notifications fail: {type(error).__name__}: {error}"

    def tell(self, event: Mapping[str, object], now: float) -> None:
        """Send one of the guard's events, if the user wants that."""
        if event["event"] in self._guard:
            self._send((of_guard(event, now),), now)

    def news(self) -> str:
        """Return a sentence on messages that could not be sent since the last call, else ''."""
        if failure := self._unreported():
            return failure
        unsent = len(self.sender.unsent)
        if unsent == self._said:
            return ""
        self._said = unsent
        return _unsent(unsent, self.sender.problem)

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
        held = 0 if keeps_held else self.limits.held_back
        why = f"{_messages(held)} held back by quiet hours or the hourly limit, and not sent"
        self._said = unsent = len(self.sender.unsent)
        failed = _unsent(unsent, self.sender.problem) if unsent else ""
        problems = [self._unreported(), failed]
        if held:
            problems.append(why)
        return list(filter(None, problems))

    def _unreported(self) -> str:
        """Return the last error of ours if it has not been reported, else ''."""
        known = self._reported
        self._reported = self._failure
        return "" if known == self._failure else self._failure

    def _send(self, messages: Sequence[Message], now: float) -> None:
        for message in self.limits.take(messages, now):
            self.sender.send(message)


def limits_of(settings: NotifySettings) -> RateLimiter:
    """Return the limits that the user wants."""
    return RateLimiter(
        settings.per_hour, settings.quiet, critical_passes=settings.critical_passes
    )


def of_guard(event: Mapping[str, object], now: float) -> Message:
    """Return the message about one of the guard's events."""
    kind = str(event["event"])
    id = event.get("run_id")
    failed = kind in ("problem", "unguarded") or bool(event.get("code"))
    critical = failed or kind in ("tripped", "command")
    return Message(
        "guard",
        now,
        safe_message(_of_guard_in_words(kind, event)),
        run=safe_name(str(event["run"])),
        run_id=None if id is None else str(id),
        severity=Severity.CRITICAL if critical else Severity.INFO,
    )


def _of_guard_in_words(kind: str, event: Mapping[str, object]) -> str:
    if kind == "command":
        return _command(event)
    return {
        "watching": "is watched",
        "tripped": "{id} tripped: {message}",
        "command-ended": "the command ended with code {code}",
        "best": "best {metric}: {value} at step {step}",
        "ended": "{state}, no longer watched",
        "problem": "the command could not be started: {message}",
        "unguarded": "{message}",
    }[kind].format(**event)


def _command(event: Mapping[str, object]) -> str:
    """Say which program is run; its arguments may be anybody's secrets."""
    argv = event["argv"]
    program = argv[0] if isinstance(argv, list) and argv else "the command"
    return f"{'would run' if event['dry_run'] else 'runs'} {program}"


def _unsent(count: int, why: str) -> str:
    return f"{_messages(count)} could not be sent: {why}"


def _messages(count: int) -> str:
    return f"{count:,} notification{'' if count == 1 else 's'}"
