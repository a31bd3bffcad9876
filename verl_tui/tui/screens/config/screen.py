"""The configuration of the shown run: its identity, settings, and differences from other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.widgets import Input

from verl_tui.rendering.config_rows import (
    SettingsPage,
    compared,
    difference_page,
    full_entry,
    heading_row,
    page_rows,
    settings_page,
)
from verl_tui.rendering.filter_words import Matches, filter_label
from verl_tui.tui.export import copy_text
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.widgets.filter_bar import FilterBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run


class ConfigScreen(RowsScreen[None]):
    """The configuration of the shown run, or its differences from other runs."""

    HELP_SECTION = HelpSection("configuration", (Overlay,), rank=60, task=WHY)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape", "back", "config.back", "Back", show=True),
        act("q,c", "dismiss", "config.close", "Close", show=True),
        act("slash", "filter", "config.filter", "Filter", show=True),
        act(
            "d",
            "difference",
            "config.difference",
            "Differences from other runs",
            show=True,
        ),
        act("y", "copy", "config.copy", "Copy the setting", show=True),
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

    def __init__(self, view: View | None = None) -> None:
        super().__init__(view)
        self._query = ""
        self._comparing = False
        self._settings = SettingsPage((), ())
        self._matches = Matches(0, 0)
        """How many settings the filter leaves."""
        self._made: tuple[object, RowsPage] | None = None
        """The page made last, and what of."""
        self._first_other = 0
        """Index of the other run that is shown first."""

    def compose(self) -> ComposeResult:
        """Make the list and the line to type a filter in."""
        yield from super().compose()
        yield FilterBar(
            id="config-bar", input_id="config-filter", hint="part of a name or a value"
        )

    def title_words(self) -> str:
        """Return what is shown."""
        return "differences" if self._comparing else "configuration"

    def page(self, view: View, width: int) -> RowsPage:
        """Return the settings; they seldom change, and there may be a thousand of them."""
        runs = self._runs(view)[: compared(width) if self._comparing else 1]
        known = tuple((run.name, run.config.revision, len(run.keys)) for run in runs)
        total = len(view.monitor.runs)
        made_of = (known, total, self._query, self._comparing, width)
        if self._made is None or self._made[0] != made_of:
            self._made = made_of, self._page(runs, view.keys["config.back"], width)
        return self._made[1]

    def _page(self, runs: Sequence[Run], clear: str, width: int) -> RowsPage:
        """Return what a filter leaves, which a key clears."""

        def found(query: str) -> SettingsPage:
            if self._comparing:
                return difference_page(runs, query, clear=clear)
            return settings_page(runs[0] if runs else None, query, clear=clear)

        page = self._settings = found(self._query)
        every = found("") if self._query else page
        self._matches = Matches(len(page.entries), len(every.entries))
        left, total = self._matches
        caption = f"filter: {self._query} ({left} of {total})" if self._query else ""
        rows, starts = page_rows(page, width)
        names = [entry.label for entry in page.entries]
        columns = bool(page.columns and page.entries)
        heading = heading_row(page, width) if columns else None
        return RowsPage(rows, starts, names, caption, heading, self._detail)

    def _detail(self, at: int | None, width: int, height: int) -> list[Pieces]:
        entry = self._settings.entries[at] if at is not None else None
        return full_entry(self._settings, entry, width, height)

    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it."""
        view = self._view
        bar = self.query_one(FilterBar)
        if view is not None:
            counts = {"settings": self._matches}
            bar.say(counts, escape=view.keys["config.back"])

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
        at = self._panel.entries.entry
        entries = self._settings.entries
        return entries[at].text if at is not None and at < len(entries) else ""

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
        self._panel.entries.focus()
