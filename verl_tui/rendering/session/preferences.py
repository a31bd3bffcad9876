"""What the app remembers of its user from one start to the next: pins, layout, theme. Never
anything of a log.

It is not the configuration: that is the user's file, which is only read. This one is the app's own,
in the user's state directory; whoever deletes it loses a few habits.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ENVIRONMENT = "VERL_TUI_STATE"
"""Environment variable that names another file; empty: nothing is remembered."""
_LARGEST = 1 << 20
"""Bytes beyond which a file is not ours."""
_MOST = 1000
"""Pins that are kept."""


@dataclass(frozen=True, slots=True)
class UserState:
    """What is remembered. A new field of one of these types needs no code."""

    pins: tuple[str, ...] = ()
    """Keys of the metrics that come first, in the order of pinning."""
    metrics_columns: int = 0
    """Columns of the grid of all metrics; 0: as many as fit well."""
    metrics_rows: int = 0
    """Rows of the grid of all metrics; 0: as many as fit well."""
    metrics_table: bool = False
    """Whether all metrics are shown as a table."""
    theme: str = ""
    """Theme that was chosen in the app last; empty: none was."""
    theme_instead_of: str = ""
    """What the configuration said then: once it says something else, that holds."""
    welcomed: bool = False
    """Whether the hints of the first start have been shown."""

    def with_pin(self, key: str) -> UserState:
        """Return the state with a metric pinned, or no longer where it was."""
        others = tuple(pin for pin in self.pins if pin != key)
        return replace(self, pins=others if key in self.pins else (*others, key)[-_MOST:])


class StateFile:
    """The state, and the file that it lives in."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file.

        Args:
            path: The file; without one the state lasts as long as the app.
        """
        self._path = path
        self.state = UserState()
        self._read()

    def change(self, change: Callable[[UserState], UserState]) -> str:
        """Change the state, and write it; what another app has written meanwhile stays.

        Returns:
            Why it could not be written, empty if it was.
        """
        others = self._read()
        self.state = change(self.state)
        if self._path is None:
            return ""
        try:
            _write(self._path, json.dumps({**others, **asdict(self.state)}, indent=1))
        except OSError as error:
            return f"not remembered: {self._path}: {(error.strerror or str(error)).lower()}"
        return ""

    def welcome(self) -> bool:
        """Return whether this is the user's first start, as far as anything is remembered, and
        remember that.
        """
        if self._path is None or self.state.welcomed:
            return False
        self.change(lambda state: replace(state, welcomed=True))
        return True

    def _read(self) -> dict[str, Any]:
        """Take over what the file says as far as it makes sense, and return all of it."""
        data = _loaded(self._path) if self._path is not None else {}
        known = {item.name: getattr(UserState(), item.name) for item in fields(UserState)}
        sound = {
            name: _sound(data[name], default) for name, default in known.items() if name in data
        }
        self.state = replace(
            self.state, **{name: value for name, value in sound.items() if value is not None}
        )
        return data


def state_path() -> Path | None:
    """Return the state file in force, None where the user wants none."""
    named = os.environ.get(ENVIRONMENT)
    if named is not None:
        return Path(named).expanduser() if named else None
    from platformdirs import user_state_path

    return user_state_path("verl-tui") / "state.json"


def _sound(value: object, default: object) -> Any:
    """Return a value as the state has it, None where it is of another type."""
    if isinstance(default, tuple):
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return tuple(dict.fromkeys(value))[-_MOST:] if fits and isinstance(value, list) else None
    fits = type(value) is type(default) and not (isinstance(value, int) and not 0 <= value < 1000)
    return value if fits else None


def _loaded(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}  # not there yet, or damaged: the app must start all the same
    return data if isinstance(data, dict) else {}


def _write(path: Path, text: str) -> None:
    """Write a file so that whoever reads it sees the old text or the new one, whole.

    Raises:
        OSError: It could not be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.close()
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
