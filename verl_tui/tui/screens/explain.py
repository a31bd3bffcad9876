"""Why: what moved first, what followed, the samples that show it, the setting to change."""

from __future__ import annotations

from verl_tui.rendering.text.piece import paragraph
from verl_tui.rendering.text.table import stacked
from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.screens.rows_screen import SCROLLS, RowsPage, RowsScreen


class ExplainScreen(RowsScreen):
    """Why the shown run is as its verdict says."""

    SCREEN = ("X", "explain", "Why it is so")
    TITLE_WORDS = "why"
    HELP_SECTION = HelpSection("why", WHY, 65)
    BINDINGS = actions("""
        escape,q,X  dismiss  explain.close  Close
    """)
    FOOTER = SCROLLS + "explain.close  closes"
    WIDEST = 140

    def page(self, width: int) -> RowsPage:
        """Return all rows: what each is, then its text. Dumps of samples are read for them, so only
        where something is new.
        """
        from verl_tui.explain import explain, in_words

        view, run = self.view, self.view.run
        if not run or view.loading:
            return RowsPage([[("not read yet", "dim")]])
        found = self.known.of(
            (run.name, run.revision, view.verdict),
            lambda: [
                *in_words(explain(run, view.verdict, view.monitor.guide, view.now))
            ],
        )
        blocks = (
            paragraph(
                text or "", "dim" * (of == "method"), width, (f"{of:<11}", "heading")
            )
            for of, text in found
        )
        return RowsPage(stacked(blocks)[0])
