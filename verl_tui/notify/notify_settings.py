"""The user's [notify] settings: what is sent, how often, and when nothing is."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Severity
from verl_tui.notify.preset_names import PRESETS
from verl_tui.notify.quiet import QuietHours
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

COMMANDS = ("watch", "guard")
"""Commands that send without an option, once there is an address."""
GUARD_EVENTS = (
    "watching",
    "tripped",
    "command",
    "command-ended",
    "best",
    "ended",
    "problem",
    "unguarded",
)
_STATES = tuple(state.value for state in State)


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

    def wants(self, id: str, severity: Severity) -> bool:
        """Return whether a finding is reported."""
        if self.ids:
            return id in self.ids
        return self.severity is not None and severity >= self.severity


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
    rest = dict(table)
    runs = rest.pop("runs", {})
    choice = _choice(Choice(), rest, known, "notify")
    values = {}
    for key, value in rest.items():
        if key not in _FIELDS:
            raise ValueError(_unknown("notify", key, (*_FIELDS, *_CHOICE, "runs")))
        name, read = _FIELDS[key]
        values[name] = _read(f"notify.{key}", read, value)
    if not isinstance(runs, dict) or not all(
        isinstance(one, dict) for one in runs.values()
    ):
        raise ValueError(
            "`notify.runs` must be a table with a table for each pattern of names"
        )
    special = []
    for pattern, changes in runs.items():
        place = f'notify.runs."{pattern}"'
        left = dict(changes)
        special.append((pattern, _choice(choice, left, known, place)))
        if left:
            raise ValueError(_unknown(place, next(iter(left)), tuple(_CHOICE)))
    return NotifySettings(choice, tuple(special), **values)


def _choice(
    base: Choice, table: dict[str, Any], known: Collection[str], place: str
) -> Choice:
    """Return a choice with the changes of a table, which loses the keys that are understood."""
    found = {}
    for key, read in _CHOICE.items():
        if key in table:
            found[key] = _read(f"{place}.{key}", read, table.pop(key))
    for id in found.get("ids", ()):
        if id not in known:
            near = difflib.get_close_matches(id, known, 3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ValueError(f"`{place}.ids`: no finding is called {id}{hint}")
    return replace(base, **found)


def _unknown(place: str, key: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
    if key in ("url", "secret", "token", "webhook"):
        hint = "an address and what gives access stand in the environment or in `file` only"
    return f"unknown key `{place}.{key}`; {hint}"


def _read(name: str, read: Callable[[Any], Any], value: object) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be {error}") from None


def _severity(value: object) -> Severity | None:
    words = {one.word: one for one in Severity}
    if value == "none":
        return None
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of none, {', '.join(words)}")
    return words[value]


def _words(among: tuple[str, ...] = ()) -> Callable[[object], frozenset[str]]:
    def read(value: object) -> frozenset[str]:
        words = []
        if isinstance(value, list):
            words = [one for one in value if isinstance(one, str)]
        if words != value or (among and not set(words) <= set(among)):
            raise ValueError(
                f"a list of {', '.join(among)}" if among else "a list of texts"
            )
        return frozenset(words)

    return read


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _minutes(value: object) -> float:
    """Return the seconds of a number of minutes."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        value = math.nan
    if not 1 <= value < math.inf:
        raise ValueError("a number of minutes, at least 1")
    return value * 60.0


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError("a whole number, at least 1")
    return value


def _quiet(value: object) -> QuietHours:
    return QuietHours.of(value if isinstance(value, str) else "")


def _preset(value: object) -> str:
    if value not in PRESETS:
        raise ValueError(f"one of {', '.join(PRESETS)}")
    return str(value)


def _file(value: object) -> Path:
    if not isinstance(value, str) or not value:
        raise ValueError("the path of a file")
    return Path(value).expanduser()


_CHOICE: Mapping[str, Callable[[Any], Any]] = {
    "severity": _severity,
    "ids": _words(),
    "states": _words(_STATES),
    "cleared": _truth,
}
_FIELDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "repeat_after": ("repeat_after", _minutes),
    "per_hour": ("per_hour", _count),
    "quiet": ("quiet", _quiet),
    "critical_passes": ("critical_passes", _truth),
    "commands": ("commands", _words(COMMANDS)),
    "guard": ("guard", _words(GUARD_EVENTS)),
    "preset": ("preset", _preset),
    "file": ("file", _file),
}
"""Key -> the field, and the reader of its value."""
