"""How a panel of the dashboard is declared: `PANEL` of its class."""

from __future__ import annotations

from typing import NamedTuple


class PanelSpec(NamedTuple):
    """The name of a panel, the key that leads to it, and its place on the dashboard."""

    name: str
    """The widget's id; its key is `panel.NAME` in the configuration."""
    key: str
    words: str
    """Its name in the help and in the command palette."""
    rank: int = 100
    """Place in the reading order of the wide layout, from 0."""
    tab: int = 100
    """Place in the order of the tab key, from 0."""
    share: float = 0.0
    """Largest share of the dashboard's rows that it gets; with none it is seen over the full screen
    only. The charts get what the others leave.
    """
    least: int = 0
    """Columns of a screen from which on it is in sight; a tall narrow one will do where it has more
    to show than a sentence.
    """
