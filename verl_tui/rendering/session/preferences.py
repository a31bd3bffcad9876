"""The app's own state file: pins, layout, theme and what is listed of runs, from one start to the
next; nothing of logs.

It lies in the user's state directory and can be deleted at any time. The configuration is another
file, which the app only reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from verl_tui.given_files import is_ordinary, is_there, replacing, why
from verl_tui.text import safe

ENVIRONMENT = "VERL_TUI_STATE"
"""Environment variable that names another file; empty for none."""
_LARGEST = 1 << 20
"""Most bytes read of the file."""
_MOST = 1000
"""Most pins kept."""


DRAWN = ("done", "trend", "ETA", "last")
"""Columns that only the list of runs has, and that nothing is sorted by."""
_COLUMNS = "state, step, done, reward, trend, KL, throughput, ETA, last, findings"
USUAL_COLUMNS = tuple(_COLUMNS.split(", "))
"""The columns of the list of runs where the user has chosen none."""


@dataclass(frozen=True, slots=True)
class UserState:
    """The remembered state. A new field of one of these types needs no further code."""

    pins: tuple[str, ...] = ()
    """Keys of the metrics that come first, in the order of pinning."""
    metrics_columns: int = 0
    """Columns of the grid of all metrics, 0 to choose by size."""
    metrics_rows: int = 0
    """Rows of the grid of all metrics, 0 to choose by size."""
    metrics_table: bool = False
    """True to show all metrics as a table."""
    run_columns: tuple[str, ...] = USUAL_COLUMNS
    """Columns of the list of runs."""
    run_groups: tuple[str, ...] = ()
    """Columns that the runs are grouped by."""
    hidden_runs: tuple[str, ...] = ()
    """Ids of the runs that are hidden."""
    looks: tuple[str, ...] = ()
    """The user's last visit to each run, as `verl_tui.rendering.session.visits` writes it."""
    theme: str = ""
    """Theme last chosen in the app, empty for none."""
    theme_instead_of: str = ""
    """Theme of the configuration at that time; a new one there takes precedence."""

    def with_pin(self, key: str) -> UserState:
        """Return the state with the pin of a metric toggled."""
        others = tuple(pin for pin in self.pins if pin != key)
        return replace(
            self, pins=others if key in self.pins else (*others, key)[-_MOST:]
        )


class StateFile:
    """The state and its file."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file.

        Args:
            path: The file; without one the state lasts as long as the app.
        """
        self.path = path
        self.state = UserState()
        self._known: dict[str, Any] = {}
        """What stood in the file when it was read last."""
        self._read()

    def change(self, change: Callable[[UserState], UserState]) -> str:
        """Change the state and write it, on top of changes by other apps.

        Returns:
            Why it could not be written, empty on success.
        """
        others = self._read()
        self.state = change(self.state)

        def write(path: Path) -> None:
            with replacing(path, ours=True) as file:
                file.write(json.dumps({**others, **asdict(self.state)}, indent=1))

        return written(self.path, write)

    def _read(self) -> dict[str, Any]:
        """Take the valid values from the file, and return all of its content."""
        data = _loaded(self.path) if self.path else {}
        # what could not be written holds until another app writes
        news, self._known = data != self._known, data
        for item in fields(UserState) if news else ():
            value = _sound(data.get(item.name), getattr(UserState(), item.name))
            if value is not None:
                self.state = replace(self.state, **{item.name: value})
        return data


def written(path: Path | None, write: Callable[[Path], object]) -> str:
    """Write to a file of the state directory, if there is one; return why it could not be written,
    empty on success.
    """
    if not path:
        return ""
    # root would replace a device
    if is_there(path) and not is_ordinary(path):
        return f"not remembered: {path}: is no file"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    except OSError as error:
        return f"not remembered: {path}: {why(error)}"
    return ""


def state_path() -> Path | None:
    """Return the path of the state file, None if the user wants none."""
    named = os.environ.get(ENVIRONMENT)
    if named is not None:
        return Path(named).expanduser() if named else None
    from platformdirs import user_state_path

    return user_state_path("verl-tui") / "state.json"


def _sound(value: object, default: object) -> Any:
    """Return a value as the type of its default, None if it is invalid."""
    if isinstance(default, tuple) and isinstance(value, list):
        sound = all(isinstance(item, str) for item in value)
        return tuple(dict.fromkeys(map(safe, value)))[-_MOST:] if sound else None
    number = not isinstance(value, int) or 0 <= value < 1000
    return value if type(value) is type(default) and number else None


def _loaded(path: Path) -> dict[str, Any]:
    if not is_ordinary(path):  # a pipe would have us wait for its writer
        return {}
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}  # not there yet, or damaged: the app must start all the same
    return data if isinstance(data, dict) else {}
