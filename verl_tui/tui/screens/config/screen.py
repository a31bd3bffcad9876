"""The configuration of the shown run: its identity, settings, and differences from other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding
from textual.widgets import Input

from verl_tui.rendering.config_rows import (
    compared,
    difference_page,
    full_entry,
    heading_row,
    page_rows,
    settings_page,
)
from verl_tui.rendering.filter_words import Matches, filter_label
from verl_tui.text import one_line
from verl_tui.tui.export import copy_text
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.config_rows import SettingEntry, SettingsPage
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.tui.widgets.role_styled import Looks

_FLAT = 8
"""Least height of a list with the names of its columns."""


class SettingsList(Entries):
    """Entries of one row each: a page is as many entries as there are rows."""

    def action_page(self, by: int) -> None:
        """Choose the entry a screenful away."""
        self._choose(
            min(
                max(0, (self.chosen or 0) + by * max(1, self.size.height - 1)),
                self._stop - 1,
            )
        )


class ConfigPanel(TextPanel):
    """A list of settings below the names of its columns, and the chosen one in full."""

    LOOKS: ClassVar[Looks] = {
        "heading": "bold $text-accent",
        "label": "$foreground",
        "value": "$text-primary",
        "dim": "$text-muted",
        "override": "$text-success",
        "differs": "$text-warning",
    }
    DEFAULT_CSS = """
    ConfigPanel {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > #config-head { height: 1; }
        & > #config-list { height: 1fr; scrollbar-gutter: stable; }
        & > #config-detail { height: 1; background: $panel; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Rows(id="config-head")
        self._list = SettingsList(id="config-list")
        self._detail = Rows(id="config-detail")
        self._head.can_focus = self._detail.can_focus = False
        self._page: SettingsPage | None = None
        self._chosen: str | None = None
        """Name of the chosen setting: a filter moves it to another row."""

    def compose(self) -> ComposeResult:
        """Make the names of the columns, the list, and the row for the chosen entry."""
        yield self._head
        yield self._list
        yield self._detail

    def show_page(self, page: SettingsPage) -> None:
        """Draw a page."""
        self._page = page
        self.redraw()

    def on_resize(self) -> None:
        """Give the chosen entry its share of the new height."""
        self._detail.styles.height = self._detail_rows
        self.call_after_refresh(self.redraw)

    @property
    def _detail_rows(self) -> int:
        return max(1, min(4, self.size.height // 6))

    @property
    def width(self) -> int:
        """Cells of a row of the list."""
        return self._list.width

    def chosen(self) -> SettingEntry | None:
        """Return the entry under the cursor."""
        at = self._list.entry
        entries = self._page.entries if self._page is not None else ()
        if at is not None and at < len(entries):
            return entries[at]
        return None

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        page = self._page
        width = self._list.width
        if page is None or width < 1:
            return
        at = self._chosen_at(page)
        rows, starts = page_rows(page, width)
        self._list.set_entries(self.strips(rows), starts, len(rows) if starts else 0)
        self._list.choose(at)
        self._draw_head(page, width)
        self._draw_detail(page, page.entries[at] if at is not None else None)

    def _chosen_at(self, page: SettingsPage) -> int | None:
        """Return the index of the chosen entry, the first where it is gone."""
        names = [entry.label for entry in page.entries]
        if not names:
            return None
        if self._chosen not in names:
            return 0
        return names.index(self._chosen)

    def _draw_head(self, page: SettingsPage, width: int) -> None:
        headed = bool(page.columns and page.entries) and self.size.height >= _FLAT
        self._head.display = headed
        row = heading_row(page, width) if headed else []
        self._head.set_strips(self.strips([row]))

    def _draw_detail(self, page: SettingsPage, entry: SettingEntry | None) -> None:
        # The height is computed, since the layout may still have the one before.
        width = self._detail.size.width
        height = self._detail_rows
        rows = full_entry(page, entry, width, height)
        self._detail.set_strips(self.strips(rows))

    @on(Entries.Chosen)
    def _moved(self, message: Entries.Chosen) -> None:
        message.stop()
        entry = self.chosen()
        self._chosen = entry.label if entry is not None else None
        self.redraw()


class ConfigScreen(Overlay[None]):
    """The configuration of the shown run, or its differences from other runs."""

    HELP_SECTION = HelpSection("configuration", (Overlay,), rank=60, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="config.back"),
        Binding("q,c", "dismiss", "Close", id="config.close"),
        Binding("slash", "filter", "Filter", key_display="/", id="config.filter"),
        Binding(
            "d", "difference", "Differences from other runs", id="config.difference"
        ),
        Binding("y", "copy", "Copy the setting", id="config.copy"),
    ]
    EDGE = (
        ("config.filter", "filter"),
        ("config.difference", "differences"),
        ("run.previous run.next", "run"),
        ("config.copy", "copy"),
        ("config.back", "back"),
    )
    DEFAULT_CSS = """
    ConfigScreen {
        & > #config-bar { dock: bottom; padding: 0 1; display: none; }
        &.-filtering > #config-bar { display: block; }
    }
    """

    _panel: ConfigPanel

    def __init__(self, view: View | None = None) -> None:
        super().__init__(ConfigPanel(), view)
        self._query = ""
        self._comparing = False
        self._matches = Matches(0, 0)
        """How many settings the filter leaves."""
        self._drawn: object = None
        """State that was drawn last."""
        self._first_other = 0
        """Index of the other run that is shown first."""

    def compose(self) -> ComposeResult:
        """Make the list and the line to type a filter in."""
        yield from super().compose()
        yield FilterBar(
            id="config-bar", input_id="config-filter", hint="part of a name or a value"
        )

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        runs = self._runs(view)[: compared(self._panel.width) if self._comparing else 1]
        known = tuple((run.name, run.config.revision, len(run.keys)) for run in runs)
        drawn = (
            known,
            len(view.monitor.runs),
            self._query,
            self._comparing,
            self.size,
            self._panel.width,
        )
        if drawn == self._drawn:
            return  # settings seldom change, and there may be a thousand of them
        self._drawn = drawn
        clear = view.keys["config.back"]
        page = self._page(runs, self._query, clear)
        every = self._page(runs, "", clear) if self._query else page
        self._matches = Matches(len(page.entries), len(every.entries))
        self._write_frame(view.run)
        self._panel.show_page(page)

    def _page(self, runs: Sequence[Run], query: str, clear: str) -> SettingsPage:
        """Return what a filter leaves that a key clears."""
        if self._comparing:
            return difference_page(runs, query, clear=clear)
        return settings_page(runs[0] if runs else None, query, clear=clear)

    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it."""
        view = self._view
        bar = self.query_one(FilterBar)
        if view is not None:
            counts = {"settings": self._matches}
            bar.say(counts, escape=view.keys["config.back"])

    def _write_frame(self, run: Run | None) -> None:
        """Write title, filter and keys into the frame."""
        words = "differences" if self._comparing else "configuration"
        words += f" of {one_line(run.name, 80)}" if run is not None else ""
        self.entitle(words)
        found, total = self._matches
        filtered = (
            (f"filter: {self._query} ({found} of {total})",) if self._query else ()
        )
        self._panel.subtitle(self.edge(*filtered))

    def _runs(self, view: View) -> list[Run]:
        """Return the shown run and the others, from the one that the user has come to on."""
        if view.run is None:
            return []
        others = [run for run in view.monitor.runs.values() if run is not view.run]
        start = self._first_other % len(others) if others else 0
        return [view.run, *others[start:], *others[:start]]

    # -- keys --------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Leave the filter, else the differences, else close."""
        if self.has_class("-filtering") or self._query:
            self.query_one("#config-filter", Input).value = self._query = ""
            self._close_filter()
            self.redraw()
        elif self._comparing:
            self.action_difference()
        else:
            self.dismiss()

    def action_difference(self) -> None:
        """Show the differences from other runs, or the whole configuration again."""
        self._comparing = not self._comparing
        self.redraw()

    def action_other(self, way: int) -> None:
        """Compare with the next run, or show the next run."""
        if self._comparing:
            self._first_other += way
            self.redraw()
        else:
            super().action_other(way)

    def action_copy(self) -> None:
        """Copy the chosen setting, as one writes it on a command line."""
        text = self.clip()
        if text:
            copy_text(self.app, text)

    def clip(self) -> str:
        """Return the chosen setting as it is copied."""
        entry = self._panel.chosen()
        return entry.text if entry is not None else ""

    def action_filter(self) -> None:
        """Open the line to type a filter in."""
        self.query_one(FilterBar).open(filter_label(["settings"]), self._query)
        self._say_matches()
        self.add_class("-filtering")

    @on(Input.Changed, "#config-filter")
    def _typed(self, event: Input.Changed) -> None:
        self._query = event.value.strip()
        self.redraw()
        self._say_matches()

    @on(Input.Submitted, "#config-filter")
    def _close_filter(self) -> None:
        self.query_one(FilterBar).display = False
        self.remove_class("-filtering")
        self._panel.query_one(SettingsList).focus()
