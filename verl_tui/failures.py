"""Errors of verl-tui's own that cost only the part in which they happened: counted by place, and
written as a report that can be shared.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from verl_tui import __version__, debug_log
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.secrets import Mask

_MOST = 20
"""Most places that are remembered; errors at other places are only counted."""
_FRAMES = 40
"""Calls of a traceback that are kept, the innermost ones."""
_PACKAGES = ("textual", "rich")
"""Packages whose versions matter to the screen."""


@dataclass
class Failure:
    """An error that came from one place, once or many times."""

    words: str
    """Its kind and place, see `in_place`."""
    trace: str
    """The first traceback."""
    count: int = 0


@dataclass
class Failures:
    """All errors that were caught since the start."""

    count: int = 0
    _known: dict[str, Failure] = field(default_factory=dict)

    def add(self, error: BaseException) -> Failure:
        """Count an error; return it with those that came from the same place."""
        self.count += 1
        words = in_place(error)
        known = self._known.get(words)
        if not known:
            trace = "".join(traceback.format_exception(error, limit=-_FRAMES)).rstrip()
            known = Failure(words, trace)
            if len(self._known) < _MOST:
                self._known[words] = known
        known.count += 1
        return known

    def sentence(self) -> str:
        """Return how many errors there were, and where; empty without any."""
        if not self.count:
            return ""
        places = ", ".join(one.words for one in self._known.values())
        errors = counted(self.count, "error")
        return f"{errors} of verl-tui's own cost a part of the screen: {places}"

    def report(self, mask: Mask) -> str:
        """Return versions and tracebacks without secrets, homes and names; empty without errors."""
        if not self.count:
            return ""
        text = "\n".join(self._lines())
        mask.learn(text)
        return mask.text(text) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"verl-tui {__version__}: {counted(self.count, 'error')} of its own"
        packages = (f"{name} {_version(name)}" for name in _PACKAGES)
        yield ", ".join([f"Python {sys.version.split()[0]}", sys.platform, *packages])
        for failure in self._known.values():
            yield ""
            yield f"{failure.words}: {counted(failure.count, 'error')}"
            yield failure.trace


def note_failure(what: str, error: BaseException) -> str:
    """Write an error of our own into the debug log; return its kind and place in words.

    Args:
        what: What was being done when it happened.
        error: The error.
    """
    debug_log.note_error(what, error)
    return in_place(error)


def in_full(error: BaseException) -> str:
    """Return the kind, place and message of an error of ours, where nothing of it is sent on."""
    return one_line(f"{in_place(error)}: {error}", 200)


def in_place(error: BaseException) -> str:
    """Return the kind of an error, and the innermost line of our own code in its traceback, else
    its innermost line: `KeyError in charts.py:42`; not its message, which may hold text from a log.
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "verl_tui" in Path(frame.filename).parts]
    found = (ours or frames)[-1:]
    places = "".join(f"{Path(one.filename).name}:{one.lineno}" for one in found)
    return f"{type(error).__name__} in {places or 'unknown'}"


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:  # installed without its metadata
        return "of unknown version"
