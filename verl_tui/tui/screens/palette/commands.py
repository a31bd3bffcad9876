"""The actions that the palette offers, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.tui.keys.bindings import bindings, keys_of
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App
    from textual.dom import DOMNode
    from textual.screen import Screen


class Command(NamedTuple):
    """One action."""

    title: str
    keys: str
    action: str
    node: DOMNode
    """The widget, screen or app that has the action."""
    panel: str = ""
    """Id of the panel that needs the focus for it; empty where none does."""


def commands(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    """Yield the actions in the screen in front: with the focus as it is, everywhere, then those of
    the other panels.
    """
    known: set[str] = set()
    chain = _binding_chain(screen)
    for node in (*chain, *(() if app in chain else (app,))):
        panel = next(
            (
                ancestor.TITLE
                for ancestor in node.ancestors_with_self
                if isinstance(ancestor, Panel)
            ),
            "",
        )
        yield from _new(_commands(app, node, panel), known)
    for panel_ in screen.query(Panel):
        plots = [node for node in panel_.query("Chart") if isinstance(node, Chart)]
        for node in (panel_, *plots[:1]):
            yield from _new(_commands(app, node, panel_.TITLE, panel_.id or ""), known)


def _binding_chain(screen: Screen[Any]) -> list[DOMNode]:
    """Return the nodes whose keys hold now: from the focus up to the app, or to a modal screen."""
    chain: list[DOMNode] = []
    for node in (screen.focused or screen).ancestors_with_self:
        chain.append(node)
        if node.is_modal:
            break
    return chain


def _commands(
    app: App[Any], node: DOMNode, place: str, panel: str = ""
) -> Iterator[Command]:
    for binding in bindings(type(node)):
        words = binding.description
        if place:
            title = f"{place.capitalize()}: {words[0].lower()}{words[1:]}"
        else:
            title = words[0].upper() + words[1:]
        yield Command(title, keys_of(app, binding), binding.action, node, panel)


def _new(found: Iterator[Command], known: set[str]) -> Iterator[Command]:
    """Yield those with a new title: the first, which is nearest to the focus, holds."""
    for command in found:
        if command.title not in known:
            known.add(command.title)
            yield command
