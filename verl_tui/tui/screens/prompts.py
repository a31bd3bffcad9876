"""Prompts by steps: the mean score of each prompt's responses at each step."""

from __future__ import annotations

import sys
from math import log2
from typing import TYPE_CHECKING

from textual import on

from verl_tui.means import clamp
from verl_tui.rendering.samples.browse import Marked
from verl_tui.rendering.samples.words import why_none
from verl_tui.rendering.text.piece import paragraph
from verl_tui.runs.samples import Place
from verl_tui.tui.keys import SAMPLES, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from verl_tui.rendering.samples.prompts import PromptRow, PromptTable
    from verl_tui.tui.screens.dashboard import Dashboard


class PromptsScreen(RowsScreen):
    """A row for each prompt that was drawn at several steps, a column for each step."""

    SCREEN = (
        "O",
        "samples.map",
        "Prompts by steps: always right, always wrong, learned, forgotten",
    )
    TITLE_WORDS = "prompts"
    HELP_SECTION = HelpSection("prompts by steps", SAMPLES, 25)
    BINDINGS = actions("""
        left,h      step(-1)  prompts.left    Earlier step of the prompt
        right,l     step(1)   prompts.right   Later step of the prompt
        v           kind      samples.kind    Training or validation
        d           beside    samples.beside  Mark; then another beside it
        escape,q,O  dismiss   prompts.close   Close
    """)
    FOOTER = """
        entries.open                samples
        prompts.left prompts.right  step
        samples.kind                training, validation
        samples.beside              mark, beside
        prompts.close               closes
    """

    def __init__(self, dashboard: Dashboard) -> None:
        """Make the screen; it begins at the sample of the panel."""
        super().__init__(dashboard)
        self._panel = panel = dashboard.panel(SamplesPanel)
        panel.show(self.view)  # it may be out of sight
        browse = panel.browse
        self._chosen = browse.fact.prompt if browse.fact else None
        self._step = sys.maxsize
        """The step under the cursor, or the nearest one."""
        self._validation: bool | None = None
        """Which samples are shown."""
        if browse.shown and not browse.chosen.follow:
            self._step, self._validation = browse.shown[0]
        self._at: tuple[PromptRow, int] | None = None
        """The chosen prompt, and the step at which it was drawn."""

    show_samples = RowsScreen.show

    # -- drawing -----------------------------------------------------------------------------------

    def page(self, width: int) -> RowsPage:
        """Return the prompts as far as they have been read."""
        from verl_tui.rendering.samples import prompts as made

        self._at = None
        view, run = self.view, self.view.run
        if not run or not run.samples.places:
            return RowsPage(why_none(view, width))
        if self._validation is None:  # the same prompts come again in each
            kinds = [place.validation for place in run.samples.places]
            self._validation = sum(kinds) > 1
        found = self._panel.scores_of(view, validation=self._validation)
        reading = found.waits()
        # sorting costs: while steps come it is done at each growth by an eighth
        news = int(6 * log2(1 + len(found.steps))) if reading else found.revision
        table: PromptTable = self.known.of(
            (found, reading, news), lambda: made.PromptTable(found)
        )
        if not table.rows:
            kind = "validation" if self._validation else "training"
            why = made.why_no_map(found, table, kind)
            return RowsPage(paragraph(why, "dim", width))
        rows, names = table.rows, [row.name for row in table.rows]
        at = names.index(self._chosen) if self._chosen in names else 0
        step = rows[at].nearest(self._step)
        self._at = rows[at], step
        columns = made.PromptColumns(table, width, step)
        return RowsPage(
            LazyRows(rows, lambda row: columns.row(row, chosen=row is rows[at])),
            range(len(rows)),
            names,
            made.map_words(found, table),
            [columns.heading()],
            lambda _, width, most: table.detail(rows[at], step, width)[:most],
            title=f"{self.of_run(self.TITLE_WORDS)}: {table.counts}",
            opens=self._open,
        )

    @on(Rows.Chosen)
    def _to_row(self) -> None:
        self.call_later(self.redraw)  # once the row is known as the chosen one

    # -- keys --------------------------------------------------------------------------------------

    def action_step(self, way: int) -> None:
        """Go to the next or previous step at which the chosen prompt was drawn."""
        if self._at:
            past, step = self._at
            steps = sorted(past.cells)
            self._step = steps[clamp(steps.index(step) + way, 0, len(steps) - 1)]
            self.redraw()

    def action_kind(self) -> None:
        """Show training or validation."""
        self._validation = not self._validation
        self.redraw()

    def _sample(self) -> Marked | None:
        """Return the first response in the chosen cell."""
        run = self.view.run
        if not run or not self._at:
            return None
        past, step = self._at
        place = Place(step, bool(self._validation))
        return Marked(run.name, run.samples, place, past.cells[step].first)

    def action_beside(self) -> None:
        """Mark the first response in the cell, or show it beside the marked one."""
        one = self._sample()
        if one is not None and (said := self._panel.compare(one)):
            toast(self.app, said)
        elif self._panel.beside:
            self.list.action_open()

    def _open(self, _: int) -> None:
        """Show the first response in the chosen cell, among those of its step."""
        one, browse = self._sample(), self._panel.browse
        if one is not None:
            self._panel.view = self.view
            browse.leave()
            browse.go_to(one.place, one.at)
            self.app.call_later(self.app.run_action, "open_screen('samples')")
