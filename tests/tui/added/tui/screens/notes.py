"""The notes about the shown run, over the dashboard."""

from verl_tui.tui.keys import HelpSection, actions
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen


class NotesScreen(RowsScreen):
    """The notes."""

    SCREEN = ("f12", "notes.open", "Notes about the run", "Notes")
    TITLE_WORDS = "notes"
    HELP_SECTION = HelpSection("notes", notes=("a note is a line of text",))
    FOOTER = "notes.close  closes"
    BINDINGS = actions("""
        escape,q,f12  dismiss  notes.close  Close
        w             write    notes.write  Write a note
    """)

    def page(self, width):
        return RowsPage([[("learning rate halved", "")]])
