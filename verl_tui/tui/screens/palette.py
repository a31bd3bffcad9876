"""The command palette: all actions by name and by synonyms. It is Textual's, for keys that come
faster than it opens, searches and closes; the remarks on Textual hold for 8.2.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Provider
from textual.content import Content
from textual.widgets import Input, OptionList

from verl_tui.rendering.text.piece import printable
from verl_tui.toml_tables import toml_table
from verl_tui.tui.keys import bindings, keys_of
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from textual.command import Hits
    from textual.dom import DOMNode
    from textual.events import Resize
    from textual.message import Message
    from textual.screen import Screen

    from verl_tui.rendering.charts.plan import PlannedChart

ALSO: dict[str, list[str]] = toml_table(__file__, "palette.toml")
"""Synonym -> words in the names of actions."""
_LETTERS = 3
"""Letters from which on the beginning of a synonym is enough."""
WIDEST = 84
"""Cells that the palette takes at most."""
_AROUND = 6
"""Cells beside a row: its padding, and the scroll bar."""
_APART = 2
"""Least cells between a command and its key."""
_LEAST = 8
"""Columns of the list of actions at least; four of them are blank."""
ROWS = 5
"""Rows of a terminal without which it has none for what it offers."""


Offer = tuple[str, str, "Callable[[], object]"]


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
                yield SystemCommand(title, keys_of(app, one), does)


async def _carry_out(app: App[Any], action: str, node: DOMNode, panel: str) -> None:
    """Carry out an action of a widget, a screen or the app, with the focus in the panel that needs
    it for that.
    """
    if panel:
        await app.run_action(f"show_panel('{panel}')", node.screen)
    await app.run_action(action, node)


def _nodes(app: App[Any], screen: Screen[Any]) -> Iterator[tuple[DOMNode, str]]:
    """Yield what has actions, and the panel that needs the focus for them: from the focus up to the
    app, also beyond a modal screen; then the panels and their charts.
    """
    for node in (screen.focused or screen).ancestors_with_self:
        yield node, ""
        if node.is_modal:
            yield app, ""
            break
    for panel in screen.query(Panel):
        yield panel, panel.id or ""
        yield from ((chart, panel.id or "") for chart in [*panel.query(Chart)][:1])


class ActionSearch(Provider):
    """Offers the app's actions, by their names and by synonyms."""

    def offered(self) -> Iterable[Offer]:
        """Return the name of each, what stands at its right, and what carries it out."""
        every = self.app.get_system_commands(self.screen)
        return sorted((one[:3] for one in every), key=lambda one: one[0])

    async def discover(self) -> Hits:
        """Offer everything while nothing is typed."""
        for title, words, callback in self.offered():
            yield DiscoveryHit(self._row(Content(title), words), callback, text=title)

    async def search(self, query: str) -> Hits:
        """Offer those whose names, or whose synonyms, match."""
        own = self.matcher(query)
        others = [self.matcher(word) for word in meant(query)]
        for title, words, callback in self.offered():
            also = [other for other in others if other.query in title.lower()]
            best = max((own, *also), key=lambda matcher: matcher.match(title))
            if (score := best.match(title)) > 0:
                row = self._row(best.highlight(title), words)
                yield Hit(score, row, callback, text=title)

    def _row(self, title: Content, words: str) -> Content:
        """Return a command in one row, its key at the right where there is room for it."""
        width = max(8, min(WIDEST, self.app.size.width) - _AROUND)
        if len(words) > width // 2:
            return title.truncate(width, ellipsis=True)
        title = title.truncate(width - len(words) - _APART, ellipsis=True)
        gap = width - title.cell_length - len(words)
        # Of sixteen colours the chosen row's ground is one.
        colour = "" if self.app.current_theme.ansi else " $text-muted"
        return Content.assemble(title, " " * gap, (words, f"not bold{colour}"))


def meant(query: str) -> list[str]:
    """Return the words in the names of actions that a synonym stands for."""
    typed = query.strip().casefold()
    if len(typed) < _LETTERS:
        return []
    found = (words for synonym, words in ALSO.items() if synonym.startswith(typed))
    return list(dict.fromkeys(chain.from_iterable(found)))


def metric_search(
    plans: Iterable[PlannedChart], take: Callable[[PlannedChart], None]
) -> type[Provider]:
    """Return what the palette searches metrics with.

    Args:
        plans: The charts to choose from.
        take: Called with the chosen one.
    """

    class MetricSearch(ActionSearch):
        """Offers metrics by key and label, in their order."""

        def offered(self) -> Iterable[Offer]:
            for one in plans:
                label = "" if one.label == one.key else f"{one.label}  "
                yield printable(f"{label}{one.key}"), "", partial(take, one)

    return MetricSearch


class Palette(ContainedWidget, CommandPalette):
    """Asks what to do."""

    DEFAULT_CSS = f"""
    Palette > Vertical {{ width: {WIDEST}; max-width: 100%; margin-top: 1; }}
    /* Textual cannot wrap words where there is no column for them. */
    Palette CommandList {{ min-width: {_LEAST}; }}
    """

    def __init__(
        self, prompt: str, providers: list[type[Provider]] | None = None
    ) -> None:
        """Make a palette.

        Args:
            prompt: What may be typed, in words that fit a narrow terminal.
            providers: What offers something to choose, by default what the app and the screen name.
        """
        super().__init__(providers, placeholder=prompt)
        self._width = 0

    def on_resize(self, event: Resize) -> None:
        """Write the rows for another width; close where there is no room, once the palette is on
        the screen: before, Textual still looks at the screen below.
        """
        typed = self.query_one(Input)
        if self._width not in (0, event.size.width):
            typed.post_message(Input.Changed(typed, typed.value))
        self._width = event.size.width
        if event.size.height < ROWS:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Turn no page of a list that has no room yet: Textual would look for a line there that was
        never laid out.
        """
        if action == "command_list" and parameters[0] in ("page_up", "page_down"):
            lists = self.query(CommandList)
            return any(found.scrollable_content_region for found in lists)
        return super().check_action(action, parameters)

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _once(self, event: Message) -> None:
        """Carry out one command only: keys while the palette closes are not meant for it."""
        if not self.is_active:
            event.stop()
            event.prevent_default()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close, unless that has been done, and stop searching: there is no list for results."""
        if not self.is_active:
            return AwaitComplete()
        self.workers.cancel_node(self)
        return super().dismiss(result)
