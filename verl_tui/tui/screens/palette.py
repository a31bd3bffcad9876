"""The command palette: all actions by name and by synonyms, in a list that typed words narrow."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich.cells import set_cell_size
from textual import events, on
from textual.app import App, SystemCommand
from textual.widgets import Input

from verl_tui.rendering.text.piece import fit, paragraph
from verl_tui.rendering.text.search import Matches
from verl_tui.toml_tables import toml_table
from verl_tui.tui.keys import actions, bindings, keys_of, user_keys
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from textual.dom import DOMNode
    from textual.screen import Screen

    from verl_tui.tui.screens.dashboard_layout import DashboardLayout

ALSO: dict[str, list[str]] = toml_table(__file__, "palette.toml")
"""Synonym -> words in the names of actions."""
_LETTERS = 3
"""Letters from which the beginning of a synonym is enough."""


class Palette(RowsScreen):
    """Asks what to do: enter carries out the chosen command."""

    WIDEST = 84
    ENTER = "takes it"
    FILTER = ("", "a few words of its name", "names")
    BINDINGS = actions("""
        escape    dismiss    palette.close  Close
        up        move(-1)   -
        down      move(1)    -
        pageup    page(-1)   -
        pagedown  page(1)    -
    """)
    FOOTER = "palette.close  closes"

    def __init__(
        self, dashboard: DashboardLayout, title: str, offers: Iterable[SystemCommand]
    ) -> None:
        """Make the list of commands over the dashboard."""
        super().__init__(dashboard)
        self._title = title
        self._offers = [*offers]

    @on(events.Mount)
    def _begin(self, event: events.Mount) -> None:
        event.prevent_default()  # which gives the focus to the list
        self.bar.open(f"{self._title}: ")

    def page(self, width: int) -> RowsPage:
        """Return the commands that match what is typed, their keys at the right."""
        found = matching(self._offers, self.wanted)
        matches = Matches(len(found), len(self._offers))
        rows = [] if found else paragraph("nothing matches", "dim", width)
        for title, keys, *_ in found:
            room = max(8, width - len(keys) - 1)
            rows.append(
                [(set_cell_size(fit(f"  {title}", room - 1), room), ""), (keys, "dim")]
            )
        return RowsPage(
            rows,
            range(len(found)),
            [one.title for one in found],
            matches=matches,
            title=self._title,
            opens=lambda at: self.app.call_later(found[at].callback),
        )

    def action_move(self, by: int) -> None:
        """Choose the next command, or the one before."""
        self.list.action_move(by)

    def action_page(self, screens: float) -> None:
        """Choose the command so many screens away."""
        self.list.action_page(screens)

    @on(Input.Changed)
    def _begin_anew(self) -> None:
        self._chosen = None  # the first one is chosen now

    @on(Input.Submitted)
    async def _take(self, event: Input.Submitted) -> None:
        event.prevent_default()  # which closes the line
        await self.list.run_action("open")


def matching(offers: Sequence[SystemCommand], typed: str) -> list[SystemCommand]:
    """Return the commands whose names have all words that are typed, first those with a word that
    begins so, then those that a synonym means; the shortest names come first.
    """
    words, other = typed.casefold().split(), meant(typed)

    def rank(one: SystemCommand) -> tuple[bool, int]:
        title = f" {one.title}".casefold()
        return f" {' '.join(words)}" not in title, len(title) if words else 0

    own: list[SystemCommand] = []
    also: list[SystemCommand] = []
    for one in sorted(offers, key=rank):
        title = one.title.casefold()
        if all(word in title for word in words):
            own.append(one)
        elif any(word in title for word in other):
            also.append(one)
    return own + also


def meant(typed: str) -> list[str]:
    """Return the words in the names of actions that a synonym stands for."""
    typed = typed.strip().casefold()
    if len(typed) < _LETTERS:
        return []
    found = (words for synonym, words in ALSO.items() if synonym.startswith(typed))
    return list(dict.fromkeys(chain.from_iterable(found)))


def commands(app: App[Any], screen: Screen[Any]) -> Iterator[SystemCommand]:
    """Yield the actions in the screen in front: with the focus as it is, everywhere, then those of
    the other panels. Of several with one title the first holds, which is nearest to the focus.
    """
    known: set[str] = set()
    for node, panel in _nodes(app, screen):
        around = node.ancestors_with_self
        place = next((one.TITLE for one in around if isinstance(one, Panel)), "")
        for one in bindings(type(node)):
            first, rest = one.description[0], one.description[1:]
            title = first.upper() + rest
            if place:
                title = f"{place.capitalize()}: {first.lower()}{rest}"
            if title not in known:
                known.add(title)
                does = partial(app.call_later, _carry_out, app, one.action, node, panel)
                yield SystemCommand(title, keys_of(one, user_keys(app)), does)


async def _carry_out(app: App[Any], action: str, node: DOMNode, panel: str) -> None:
    """Carry out an action of a widget, a screen or the app, with the focus in the panel that needs
    it for that.
    """
    if panel:
        await app.run_action(f"show_panel('{panel}')", node.screen)
    await app.run_action(action, node)


def _nodes(app: App[Any], screen: Screen[Any]) -> Iterator[tuple[DOMNode, str]]:
    """Yield what has actions, and the panel that needs the focus for them: from the focus up to the
    app, also beyond a modal screen; then the panels.
    """
    for node in (screen.focused or screen).ancestors_with_self:
        yield node, ""
        if node.is_modal:
            yield app, ""
            break
    yield from ((panel, panel.id or "") for panel in screen.query(Panel))
