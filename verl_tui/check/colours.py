"""Colours of the note."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLES: Mapping[str, str] = {
    "info": "blue",
    "healthy": "green",
    "warning": "yellow",
    "critical": "bold red",
    "running": "green",
    "finished": "green",
    "stalled": "yellow",
    "crashed": "bold red",
}
"""Verdicts, severities and states -> their colour on a terminal."""
