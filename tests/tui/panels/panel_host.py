"""What the tests of the list-like panels share: an app with one panel."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from textual.app import App, ComposeResult

from verl_tui.tui.terminal.output import screen_rows
from verl_tui.tui.widgets import rows

if TYPE_CHECKING:
    import pytest

    from verl_tui.tui.panels.panel import Panel


class Host(App[None]):
    """Nothing but one panel; counts how often it is repainted, and keeps what it says."""

    def __init__(self, panel: Panel, *, narrow: bool = False) -> None:
        super().__init__()
        self.panel = panel
        self.narrow = narrow
        self.said: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.screen.set_class(self.narrow, "-narrow")
        for listed in self.panel.query(rows.Rows):
            listed.focus()

    def on_runs_panel_picked(self, message: Any) -> None:
        self.said.append(message.name)

    def on_health_panel_followed(self, message: Any) -> None:
        self.said.append(message.finding.id)

    @property
    def lines(self) -> list[str]:
        """The screen as text; each of its rows is exactly as wide as the screen."""
        rows = screen_rows(self)
        assert {cell_len(row) for row in rows} == {self.size.width}
        return rows

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def subtitle_words(self) -> str:
        return str(self.panel.border_subtitle or "")


def count_paints(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count from now on how often rows are asked to repaint, and how often a row is painted
    otherwise than before.
    """
    counts: Counter[str] = Counter()
    refresh, render = rows.Rows.refresh, rows.Rows.render_line

    def counted_refresh(self: rows.Rows, *regions: Any, **options: Any) -> rows.Rows:
        counts["refresh"] += 1
        return refresh(self, *regions, **options)

    def counted_render(self: rows.Rows, *row: Any) -> Any:
        counts["render"] += 1
        return render(self, *row)

    monkeypatch.setattr(rows.Rows, "refresh", counted_refresh)
    monkeypatch.setattr(rows.Rows, "render_line", counted_render)
    return counts
