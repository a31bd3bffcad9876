"""The user's [notify] settings: what is sent, how often, and when nothing is."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
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
from verl_tui.notify.message import GUARD_EVENTS
from verl_tui.runs.views.state import State

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

    def hold(self, now: float) -> bool:
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
            near = difflib.get_close_matches(id, known, 3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ValueError(f"`{place}ids`: no finding is called {id}{hint}")
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
