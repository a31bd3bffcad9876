"""The keys that sentences on the screen name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HINT_KEYS: Mapping[str, str] = {
    "help": "?",
    "quit": "q",
    "pause": "p",
    "reload": "r",
    "back": "esc",
    "config.back": "esc",
    "metrics.back": "esc",
    "samples.back": "esc",
    "sources": "i",
    "samples.open": "o",
    "panel.samples": "f6",
    "samples.follow": "f",
    "samples.unfold": "u",
    "health.not_judged": "v",
    "chart.page_down": "pgdn",
    "chart.page_up": "pgup",
    "look.in": "+",
    "log.back": "esc",
}
"""Names of actions, as the configuration has them -> their key unless the user has given them
another one.
"""
