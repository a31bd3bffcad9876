"""The user's [notify] settings: what is sent, how often, and when nothing is; and what they hold
back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from verl_tui.config import (
    TRUTH,
    Setting,
    is_number,
    one_of,
    read_settings,
    texts,
    whole,
)
from verl_tui.health.finding import SEVERITIES, Finding, Severity
from verl_tui.notify.message import GUARD_EVENTS, Message
from verl_tui.runs.views.state import State
from verl_tui.words import few, nearest

COMMANDS = ("watch", "guard")
"""Commands that send without an option, once there is an address."""
PRESETS = ("json", "apprise")


class QuietHours(NamedTuple):
    """A part of each day by the local clock, over midnight if it ends earlier than it begins."""

    begin: time
    end: time
    """The first minute after it."""

    @classmethod
    def of(cls, text: str) -> QuietHours:
        """Return the quiet hours of a text such as `22:00-07:30`.

        Raises:
            ValueError: It is no such text, or names no part of a day.
        """
        words = text.replace("–", "-").split("-")
        try:
            begin, end = (
                datetime.strptime(one.strip(), "%H:%M").time()  # noqa: DTZ007 - of a day
                for one in words
            )
        except ValueError:
            raise ValueError("two times of the day, such as 22:00-07:30") from None
        if begin == end:
            raise ValueError("two different times, such as 22:00-07:30")
        return cls(begin, end)

    def contain(self, now: float) -> bool:
        """Return whether a time, in seconds since the epoch, lies in them."""
        at = datetime.fromtimestamp(now).time()  # noqa: DTZ006 - the user's own clock
        if self.begin < self.end:
            return self.begin <= at < self.end
        return at >= self.begin or at < self.end


@dataclass(frozen=True, slots=True)
class Choice:
    """The events of a run that are reported."""

    severity: Severity | None = Severity.CRITICAL
    """Least severity of a finding, None for no finding."""
    ids: frozenset[str] = frozenset()
    """The only findings to report, whatever their severity; empty: all from `severity` on."""
    states: frozenset[str] = frozenset({"finished", "crashed", "stalled"})
    cleared: bool = False
    """Whether the end of a finding is reported."""

    def wants(self, finding: Finding) -> bool:
        """Return whether a finding is reported."""
        if self.ids:
            return finding.id in self.ids
        return self.severity is not None and finding.severity >= self.severity


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """All of [notify]."""

    choice: Choice = Choice()
    runs: tuple[tuple[str, Choice], ...] = ()
    """Other choices for the runs whose names fit a pattern; the first that fits holds."""
    repeat_after: float | None = None
    """Seconds after which a finding that lasts is reported again, None for never."""
    per_hour: int = 20
    quiet: QuietHours | None = None
    critical_passes: bool = True
    commands: frozenset[str] = frozenset(COMMANDS)
    guard: frozenset[str] = frozenset(
        {"command", "command-ended", "problem", "unguarded"}
    )
    """The guard's own events that are reported, besides findings and states."""
    preset: str | None = None
    """Form of the messages, None to go by the address."""
    file: Path | None = field(default=None, repr=False)
    """File that holds the address."""

    def choice_for(self, run: str) -> Choice:
        """Return the choice of events for a run."""
        fitting = (choice for pattern, choice in self.runs if fnmatchcase(run, pattern))
        return next(fitting, self.choice)


def parse_settings(table: Mapping[str, Any], known: Collection[str]) -> NotifySettings:
    """Return the settings of a [notify] table.

    Args:
        table: As the configuration has it.
        known: Ids of all findings.

    Raises:
        ValueError: An unknown key or a value of the wrong kind; one sentence for people.
    """
    own = _read(table, _OF_ALL | _OF_A_RUN, "notify.", known)
    runs = own.pop("runs", {})
    choice = Choice(**{key: own.pop(key) for key in _OF_A_RUN if key in own})
    choices = [
        (
            name,
            replace(choice, **_read(one, _OF_A_RUN, f'notify.runs."{name}".', known)),
        )
        for name, one in runs.items()
    ]
    return NotifySettings(choice, tuple(choices), **own)


def _read(
    table: Mapping[str, Any],
    keys: Mapping[str, Setting],
    place: str,
    known: Collection[str],
) -> dict[str, Any]:
    """Return the values of a table that may have some keys, and that may name known findings."""
    for key in table:
        if key in ("url", "secret", "token", "webhook"):
            where = "an address and what gives access stand in the environment or in `file` only"
            raise ValueError(f"unknown key `{place}{key}`; {where}")
    values = read_settings(table, keys, place)
    for id in values.get("ids", ()):
        if id not in known:
            hint = nearest(id, known) or "`verl-tui guide` lists them"
            raise ValueError(f"`{place}ids`: no finding is called {id}; {hint}")
    return values


def _is_tables(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, dict) for one in value.values()
    )


_OF_A_RUN: dict[str, Setting] = {
    "severity": one_of("none", *SEVERITIES)._replace(convert=SEVERITIES.get),
    "ids": texts(),
    "states": texts(*(state.value for state in State)),
    "cleared": TRUTH,
}
_OF_ALL: dict[str, Setting] = {
    "repeat_after": Setting(
        "a number of minutes, at least 1",
        lambda value: is_number(value) and value >= 1,
        lambda value: value * 60.0,
    ),
    "per_hour": whole(1),
    "quiet": Setting(
        "two times of the day, such as 22:00-07:30",
        lambda value: isinstance(value, str),
        QuietHours.of,
    ),
    "critical_passes": TRUTH,
    "commands": texts(*COMMANDS),
    "guard": texts(*GUARD_EVENTS),
    "preset": one_of(*PRESETS),
    "file": Setting(
        "the path of a file",
        lambda value: isinstance(value, str) and value != "",
        lambda value: Path(value).expanduser(),
    ),
    "runs": Setting("a table with a table for each pattern of names", _is_tables),
}


# -- what goes when --------------------------------------------------------------------------------


_LINES = 12
"""Runs and findings that a summary names."""
_HOUR = 3600.0


class Limits:
    """Lets messages pass, or holds them back: at most so many go an hour, and in quiet hours only
    critical ones. One message sums up what was held back as soon as it may go.
    """

    def __init__(self, settings: NotifySettings) -> None:
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

    def due(self, messages: Iterable[Message], now: float) -> Sequence[Message]:
        """Return what goes now: a summary of what was held back, and new messages.

        Args:
            messages: New ones, in order.
            now: Seconds since the epoch.
        """
        # A clock that was set back must not hold everything back until it has caught up.
        self.sent = [time for time in self.sent if now - _HOUR < time <= now]
        passing = self._passing(now)
        room = self._settings.per_hour - len(self.sent)
        out: list[Message] = []
        if self.held and room > 0 and Severity.INFO in passing:
            out.append(self._summary(now))
        for one in messages:
            if len(out) < room and one.severity in passing:
                out.append(one)
            else:
                self._hold({one.subject: 1}, one.severity)
        self.sent += [now] * len(out)
        return out

    def _summary(self, now: float) -> Message:
        """Return one message in place of all that wait, which then wait no more."""
        held, worst = self.held, self.worst
        self.held, self.worst = Counter(), Severity.INFO
        names = [
            one if count == 1 else f"{one} ×{count}" for one, count in held.items()
        ]
        return Message(
            event="summary",
            time=now,
            message=few(names, _LINES),
            severity=worst,
            held_back=dict(held),
        )

    def _passing(self, now: float) -> list[Severity]:
        """Return the severities that go at this hour."""
        settings = self._settings
        if not settings.quiet or not settings.quiet.contain(now):
            return [*Severity]
        return [Severity.CRITICAL] if settings.critical_passes else []

    def take_back(self, message: Message) -> None:
        """Count a message as not sent; what a summary stands for is held back again."""
        self.sent = self.sent[:-1]
        self._hold(message.held_back, message.severity)

    def _hold(self, subjects: dict[str, int], severity: Severity) -> None:
        self.held.update(subjects)
        self.worst = max(self.worst, severity) if self.held else self.worst
