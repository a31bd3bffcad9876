"""Decides when messages go: at most so many an hour, and in quiet hours only critical ones.

Messages that are held back are not lost: one message sums them up as soon as it may go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity
from verl_tui.notify.message import summary_message, with_note
from verl_tui.notify.quiet import minute_of_day

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.notify.message import Message
    from verl_tui.notify.quiet import QuietHours

_HOUR = 3600.0
_KEPT = 200
"""Most messages that are kept for a summary; further ones are only counted."""


class RateLimiter:
    """Lets messages pass, or holds them back, depending only on the messages and the times handed
    in.
    """

    def __init__(
        self,
        per_hour: int,
        quiet: QuietHours | None = None,
        *,
        critical_passes: bool = True,
        minute: Callable[[float], int] = minute_of_day,
    ) -> None:
        """Begin with nothing sent.

        Args:
            per_hour: Messages within any 3,600 seconds at most, summaries included.
            quiet: Hours in which messages are held back.
            critical_passes: Whether critical ones are sent in quiet hours as well.
            minute: Returns the minute of the day of seconds since the epoch.
        """
        self._per_hour = per_hour
        self._quiet = quiet
        self._critical_passes = critical_passes
        self._minute = minute
        self.sent: list[float] = []
        """Times of the messages sent within the last hour."""
        self.held: list[Message] = []
        self.more = 0
        """Number of further messages held back."""
        self._summed: tuple[str, list[Message], int] = ("", [], 0)
        """Id of the last summary, and what it stands for."""

    @property
    def held_back(self) -> int:
        """Number of messages that wait for a summary."""
        return len(self.held) + self.more

    def take(self, messages: Iterable[Message], now: float) -> Sequence[Message]:
        """Return what goes now: new messages, and a summary of those held back.

        Args:
            messages: New ones, in order.
            now: Seconds since the epoch.
        """
        # A clock that was set back must not hold everything back until it has caught up.
        self.sent = [time for time in self.sent if now - _HOUR < time <= now]
        is_quiet = self._quiet is not None and self._quiet.hold(self._minute(now))
        out: list[Message] = []
        if self.held and not is_quiet and self._room > 0:
            summed = summary_message(self.held, self.more, now)
            self._summed = (summed.id, self.held, self.more)
            self.held = []
            self.more = 0
            out.append(self._last(summed, now))
        for one in messages:
            if self._passes(one, is_quiet=is_quiet):
                out.append(self._last(one, now))
            else:
                self._hold(one)
        return out

    def take_back(self, message: Message) -> None:
        """Count a message as not sent; what a summary stands for is held back again."""
        self.sent = self.sent[:-1]
        id, held, more = self._summed
        if message.id == id:
            self.held = [*held, *self.held]
            self.more += more
            self._summed = ("", [], 0)

    def _passes(self, message: Message, *, is_quiet: bool) -> bool:
        critical = self._critical_passes and message.severity is Severity.CRITICAL
        return self._room > 0 and (critical or not is_quiet)

    @property
    def _room(self) -> int:
        return self._per_hour - len(self.sent)

    def _last(self, message: Message, now: float) -> Message:
        """Count a message as sent; the last one of an hour says so."""
        self.sent.append(now)
        if self._room > 0:
            return message
        return with_note(
            message,
            f"{self._per_hour} messages within an hour is the limit: others are summed up later",
        )

    def _hold(self, message: Message) -> None:
        if len(self.held) < _KEPT:
            self.held.append(message)
        else:
            self.more += 1
