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
    css: str = ""
    """Its rules in the dashboard's stylesheet, where `&` is the dashboard with a class for its
    size: `-wide`, `-tall` and others (see the app's breakpoints), and with the class `-NAME` while
    the panel has something to show. A panel without rules is seen over the full screen only.
    """

    @property
    def rules(self) -> str:
        """The rules; those that keep it out of sight where it has none."""
        return self.css or f"& > #{self.name} {{ display: none; }}"
