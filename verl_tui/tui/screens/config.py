"""Configuration: who the run is, every setting with where it was read; `d` the differences from
other runs, `/` filters, `y` copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.text.search import Matches
from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.config_rows import SettingEntry
    from verl_tui.runs.run import Run


class ConfigScreen(RowsScreen):
    """The configuration of the shown run, or its differences from other runs."""

    SCREEN = ("c", "config", "Configuration, differences from other runs", "Settings")
    HELP_SECTION = HelpSection("configuration", WHY, 60)
    FILTER = ("filter settings: ", "part of a name or a value", "settings")
    BINDINGS = actions("""
        escape  back           config.back        Back
        q,c     dismiss        config.close       Close
        /       filter         config.filter      Filter
        d       difference     config.difference  Differences from other runs
        y       app.copy_here  config.copy        Copy the setting
    """)
    FOOTER = """
        config.filter          filter
        config.difference      differences
        run.previous run.next  run
        config.copy            copy
        config.back            back
    """

    _comparing = False
    _entries: Sequence[SettingEntry] = ()
    """Those that are listed."""
    _first_other = 0
    """Index of the other run that is shown first."""

    def page(self, width: int) -> RowsPage:
        """Return the settings; they seldom change, and there may be a thousand of them."""
        from verl_tui.rendering.config_rows import compared

        runs = self._runs()[: compared(width) if self._comparing else 1]
        known = [(run.name, run.config.revision, len(run.keys)) for run in runs]
        total = len(self.view.monitor.runs)
        page: RowsPage = self.known.of(
            (known, total, self.wanted, self._comparing, width),
            lambda: self._page_of(runs, width),
        )
        return page

    def _page_of(self, runs: Sequence[Run], width: int) -> RowsPage:
        """Return what the filter leaves."""
        from verl_tui.rendering import config_rows as made

        if self._comparing:
            every = made.difference_page(runs)
        else:
            every = made.settings_page(runs[0] if runs else None)
        page = made.matching(every, self.wanted, clear=self.view.keys["config.back"])
        rows, starts, heading = made.page_rows(page, width)
        self._entries = page.entries
        return RowsPage(
            rows,
            starts,
            [entry.label for entry in page.entries],
            heading=heading,
            detail=lambda _, *room: made.full_entry(self._chosen_entry, *room),
            matches=Matches(len(page.entries), len(every.entries)),
            title=self.of_run("differences" if self._comparing else "configuration"),
        )

    def _runs(self) -> list[Run]:
        """Return the shown run and the others, from the one that the user has come to on."""
        shown = self.view.run
        if not shown:
            return []
        others = [run for run in self.view.monitor.runs.values() if run is not shown]
        start = self._first_other % max(1, len(others))
        return [shown, *others[start:], *others[:start]]

    # -- keys --------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Leave the filter, else the differences, else close."""
        if self._comparing and not (self.bar.display or self.wanted):
            self.action_difference()
        else:
            super().action_back()

    def action_difference(self) -> None:
        """Show the differences from other runs, or the whole configuration again."""
        self._comparing = not self._comparing
        self.redraw()

    async def action_other(self, way: int) -> None:
        """Compare with the next run, or show the next run."""
        if self._comparing:
            self._first_other += way
            self.redraw()
        else:
            await super().action_other(way)

    @property
    def _chosen_entry(self) -> SettingEntry | None:
        at = self.list.entry
        return None if at is None else next(iter(self._entries[at:]), None)

    def clip(self) -> str:
        """Return the chosen setting as it is copied."""
        return self._chosen_entry.text if self._chosen_entry else ""
