"""The entry to notifications: changes go through the limits to the sender."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.health.finding import Severity
from verl_tui.notify.changes import Changes
from verl_tui.notify.delivery import deliver
from verl_tui.notify.limits import Limits
from verl_tui.notify.message import Message, safe_message, safe_name
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
        sender: Sender | None = None,
    ) -> None:
        """Send nothing yet.

        Args:
            settings: The user's wishes.
            to: Where messages go.
            sender: Sends the messages; by default to their destination.
        """
        self.changes = Changes(settings)
        self.limits = Limits(settings)
        self.sender = sender if sender is not None else Sender(partial(deliver, to))
        self._guard = settings.guard
        self._failure = ""
        """The last error of ours."""
        self._told = ("", 0)
        """The last error of ours, and the number of unsent messages, that were reported."""

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
        """Return a sentence on what could not be sent since the last call, else ''."""
        before, self._told = self._told, (self._failure, len(self.sender.unsent))
        failure, unsent = self._told
        parts = [failure] if failure != before[0] else []
        if unsent != before[1]:
            why = self.sender.problem
            parts.append(f"{_messages(unsent)} could not be sent: {why}")
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
        self._told = (self._told[0], 0)  # said again where it stays to be read
        problems = [self.news()]
        held = 0 if keeps_held else self.limits.waiting
        if held:
            why = "held back by quiet hours or the hourly limit, and not sent"
            problems.append(f"{_messages(held)} {why}")
        return list(filter(None, problems))

    def _send(self, messages: Sequence[Message], now: float) -> None:
        for message in self.limits.take(messages, now):
            self.sender.send(message)


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
    if kind == "command":  # its arguments may be anybody's secrets
        argv = event["argv"]
        program = argv[0] if isinstance(argv, list) and argv else "the command"
        return f"{'would run' if event['dry_run'] else 'runs'} {program}"
    return _GUARD[kind].format(**event)


_GUARD = {
    "watching": "is watched",
    "tripped": "{id} tripped: {message}",
    "command-ended": "the command ended with code {code}",
    "best": "best {metric}: {value} at step {step}",
    "ended": "{state}, no longer watched",
    "problem": "the command could not be started: {message}",
    "unguarded": "{message}",
}


def _messages(count: int) -> str:
    return f"{count:,} notification{'' if count == 1 else 's'}"
