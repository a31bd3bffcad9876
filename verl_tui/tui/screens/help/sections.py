"""The sections of the help, from what classes declare: keys of the screen in front come first, all
others by the task that they are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from textual.screen import Screen

from verl_tui.tui.keys.bindings import is_ours
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.kinds import all_kinds
from verl_tui.tui.keys.tasks import MOVE, TASKS
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.dashboard_layout import DashboardLayout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from textual.app import App
    from textual.binding import Binding
    from textual.dom import DOMNode

_MAIN = (DashboardLayout, Dashboard)
"""Both have keys of the main screen: how its panels are arranged, and what they show."""


class KeySection(NamedTuple):
    """Classes whose keys are listed under one title."""

    declared: HelpSection
    kinds: tuple[type[DOMNode], ...]
    everywhere: bool = False
    """True if only keys are listed that mean the same in front."""
    sorted_by_task: bool = False
    """True if the classes have keys of several tasks, and only those of this one are listed."""

    def lists(self, binding: Binding) -> bool:
        """Return whether a key of its classes stands in it."""
        return not self.sorted_by_task or (binding.group or MOVE) == self.declared.task


def sections(app: App[object], focused: DOMNode | None) -> list[KeySection]:
    """Return all sections: what holds in front; task by task what holds everywhere; task by task
    what holds in the panels and in the screens.
    """
    screens = _declared(screens=True)
    panels = _declared(screens=False)
    front = [
        one for screen in reversed(app.screen_stack) for one in _of([screen], screens)
    ]
    around = [] if front or focused is None else focused.ancestors_with_self
    first = [*front, *_of(around, panels)]
    main = _by_task("the dashboard, while nothing is over it", _MAIN) if front else []
    others = _everywhere(type(app), () if front else _MAIN)
    everywhere = [
        section._replace(everywhere=True) for section in _by_task("everywhere", others)
    ]
    places = (*panels, *main, *screens)
    return [*dict.fromkeys((*first, *everywhere, *_sorted_by_task(places)))]


def all_sections(app: type[App[Any]]) -> list[KeySection]:
    """Return the sections of a kind of app that is not running: task by task what holds
    everywhere, and what holds in the panels and in the screens.
    """
    places = (*_declared(screens=False), *_declared(screens=True))
    everywhere = _by_task("everywhere", _everywhere(app, _MAIN))
    return [*everywhere, *_sorted_by_task(places)]


def _sorted_by_task(places: Sequence[KeySection]) -> Iterator[KeySection]:
    for task in TASKS:
        for section in places:
            if section.declared.task == task:
                yield section


def _declared(*, screens: bool) -> list[KeySection]:
    """Return the sections that screens declare, or panels and lists, in their order."""
    kinds = [kind for kind in all_kinds() if issubclass(kind, Screen) == screens]
    found = ((kind.__dict__.get("HELP_SECTION"), kind) for kind in kinds)
    declared = [
        KeySection(one, (kind, *one.also)) for one, kind in found if one is not None
    ]
    return sorted(declared, key=lambda one: (one.declared.rank, one.declared.title))


def _of(nodes: Sequence[DOMNode], known: Iterable[KeySection]) -> list[KeySection]:
    """Return the sections of nodes."""
    return [
        section
        for section in known
        if any(isinstance(node, section.kinds[0]) for node in nodes)
    ]


def _everywhere(
    app: type[App[Any]], main: Sequence[type[DOMNode]]
) -> tuple[type[DOMNode], ...]:
    """Return the app's classes with keys of their own, and those of its main screen."""
    ours = (kind for kind in app.__mro__ if is_ours(kind))
    return (*(kind for kind in ours if "BINDINGS" in kind.__dict__), *main)


def _by_task(title: str, kinds: tuple[type[DOMNode], ...]) -> list[KeySection]:
    """Return a section for each task that classes may have keys for."""
    return [
        KeySection(HelpSection(title, task=task), kinds, sorted_by_task=True)
        for task in TASKS
    ]
