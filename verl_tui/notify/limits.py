"""Decides when messages go: at most so many an hour, and in quiet hours only critical ones.

Messages that are held back are not lost: one message sums them up as soon as it may go.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.health.finding import Severity
from verl_tui.notify.message import summary_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.notify.message import Message
    from verl_tui.notify.notify_settings import NotifySettings

_HOUR = 3600.0


class Limits:
    """Lets messages pass, or holds them back."""

    def __init__(self, settings: NotifySettings) -> None:
        """Begin with nothing sent."""
        self._settings = settings
        self.sent: list[float] = []
        """Times of the messages sent within the last hour, summaries included."""
        self.held: Counter[str] = Counter()
        """What waits for a summary -> how often."""
        self.worst = Severity.INFO
        """The greatest severity of what waits."""

    @property
    def waiting(self) -> int:
        """Number of messages that wait for a summary."""
        return sum(self.held.values())

    def take(self, messages: Iterable[Message], now: float) -> Sequence[Message]:
        """Return what goes now: a summary of what was held back, and new messages.

        Args:
            messages: New ones, in order.
            now: Seconds since the epoch.
        """
        # A clock that was set back must not hold everything back until it has caught up.
        self.sent = [time for time in self.sent if now - _HOUR < time <= now]
        is_quiet = self._is_quiet(now)
        out: list[Message] = []
        if self.held and not is_quiet and self._room > 0:
            out.append(self._counted(summary_message(self.held, self.worst, now), now))
            self.held = Counter()
            self.worst = Severity.INFO
        for one in messages:
            if self._room > 0 and (not is_quiet or self._is_urgent(one)):
                out.append(self._counted(one, now))
            else:
                self._hold({one.subject: 1}, one.severity)
        return out

    def _is_quiet(self, now: float) -> bool:
        quiet = self._settings.quiet
        return quiet is not None and quiet.hold(now)

    def _is_urgent(self, message: Message) -> bool:
        return self._settings.critical_passes and message.severity is Severity.CRITICAL

    def take_back(self, message: Message) -> None:
        """Count a message as not sent; what a summary stands for is held back again."""
        self.sent = self.sent[:-1]
        if message.held:
            self._hold(message.held, message.severity)

    @property
    def _room(self) -> int:
        return self._settings.per_hour - len(self.sent)

    def _counted(self, message: Message, now: float) -> Message:
        """Count a message as sent; the last one of an hour says so."""
        self.sent.append(now)
        if self._room > 0:
            return message
        most = self._settings.per_hour
        note = (
            f"{most} messages within an hour is the limit: others are summed up later"
        )
        return replace(message, note=note)

    def _hold(self, subjects: dict[str, int], severity: Severity) -> None:
        self.held.update(subjects)
        self.worst = max(self.worst, severity)
