"""Dicts of metrics as a console prints them, and at their steps."""

from __future__ import annotations

from typing import NamedTuple


class PrintedDict(NamedTuple):
    """A dict of metrics as it was printed."""

    keys: tuple[str, ...]
    values: tuple[float, ...]
    training: bool
    """True if the trainer prints dicts of this kind at each logging interval."""
    epoch: float | None = None
    step: int | None = None
    """The step that the dict states."""
    ahead: int = 0
    """Steps by which the bar is behind when the dict is printed, and with it all steps here, up to
    that of a `PlacedDict`.
    """


class PlacedDict(NamedTuple):
    """A dict whose step is known."""

    printed: PrintedDict
    step: int
    counted: bool
    """True if the step was counted: neither the dict nor a bar states it."""
    first: bool = False
    """True for the first training dict behind a new training bar."""
