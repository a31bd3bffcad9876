"""The sections of the help, from what classes declare: keys of the screen in front come first, all
others by the task that they are for.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.binding import Binding
from textual.screen import Screen

from verl_tui.rendering.charts.symbols import legend
from verl_tui.tui.keys.act import MOVE, TASKS, HelpSection
from verl_tui.tui.keys.bindings import all_kinds, is_ours, key_name
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.dashboard_layout import DashboardLayout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from textual.app import App
    from textual.binding import ActiveBinding
    from textual.dom import DOMNode

_MAIN = (DashboardLayout, Dashboard)
"""Both have keys of the main screen: how its panels are arranged, and what they show."""


KeyRow = tuple[str, str, str]
"""Keys, what they do, the name of the action."""
_OTHER_RUNS = {f"run.{n}" for n in range(2, 10)}
_RUNS_ROW = ("1 … 9", "Run by its number", "run.1 … run.9")
"""The one row for the keys of all runs, which stands where that of the first would."""
_PALETTE_ROW = ("ctrl+p", "Command palette: every action by its name, themes", "")
"""Textual's own key, which is not declared here."""


class KeySection(NamedTuple):
    """Keys that are listed under one title."""

    task: str
    """What they are for."""
    title: str
    """Where they hold."""
    rows: tuple[KeyRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        """Lines below the title."""
        return len(self.rows) + len(self.notes)

    def with_words(self, wanted: str) -> KeySection:
        """Return it with the lines that contain all words, in any case; those in the title hold for
        all of them.
        """
        named = f"{self.task} {self.title}".casefold()
        words = [word for word in wanted.casefold().split() if word not in named]

        def matches(*line: str) -> bool:
            text = " ".join(line).casefold()
            return all(word in text for word in words)

        return self._replace(
            rows=tuple(row for row in self.rows if matches(*row)),
            notes=tuple(filter(matches, self.notes)),
        )


class _Place(NamedTuple):
    """Classes whose keys are listed under one title."""

    declared: HelpSection
    kinds: tuple[type[DOMNode], ...]
    by_task: bool = False
    """True if the classes have keys of several tasks, and only those of this one are listed."""

    def section(
        self,
        user: Mapping[str, str],
        active: Mapping[str, ActiveBinding] | None = None,
    ) -> KeySection:
        """Return the section, each name once.

        Args:
            user: The user's own keys.
            active: What keys mean in front; those that mean something else there are left out.
        """
        rows: dict[object, KeyRow] = {}
        declared = self.declared
        task = declared.task
        for binding in chain.from_iterable(map(described, self.kinds)):
            row = _row(binding, user, active)
            listed = not self.by_task or (binding.group or MOVE) == task
            if row[0] and listed:
                rows.setdefault(binding.id or row, row)
        if declared.title == "everywhere" and task == MOVE:
            rows[_PALETTE_ROW] = _PALETTE_ROW
        title = task.description
        return KeySection(title, declared.title, (*rows.values(),), declared.notes)


def sections(app: App[Any]) -> list[KeySection]:
    """Return what holds in the screen below the help; what holds everywhere, and what holds in the
    panels and screens, both task by task. The signs in charts stand behind the first with charts.
    """
    below = app.screen_stack[-2] if len(app.screen_stack) > 1 else app.screen
    active = below.active_bindings
    user = getattr(app, "user_keys", {})
    found: list[KeySection] = []
    signs = signs_section()
    for place in dict.fromkeys(_places(app, below.focused)):
        apart = place.declared.title == "everywhere"
        found.append(place.section(user, active if apart else None))
        if place.declared.charts and signs not in found:
            found.append(signs)
    return [section for section in found if section.rows]


def _places(app: App[Any], focused: DOMNode | None) -> list[_Place]:
    screens, panels = _declared(screens=True), _declared(screens=False)
    stack = reversed(app.screen_stack)
    first = [one for screen in stack for one in _of([screen], screens)]
    main = _by_task("the dashboard, while nothing is over it", _MAIN) if first else []
    if not first and focused is not None:
        first = _of(focused.ancestors_with_self, panels)
    holding = _by_task("everywhere", _everywhere(type(app), () if main else _MAIN))
    return [*first, *holding, *_sorted_by_task((*panels, *main, *screens))]


def all_sections(app: type[App[Any]], user: Mapping[str, str]) -> list[KeySection]:
    """Return the sections of a kind of app that is not running: task by task what holds
    everywhere, and what holds in the panels and in the screens; with the user's own keys.
    """
    places = (*_declared(screens=False), *_declared(screens=True))
    everywhere = _by_task("everywhere", _everywhere(app, _MAIN))
    found = (one.section(user) for one in (*everywhere, *_sorted_by_task(places)))
    return [section for section in found if section.rows]


def signs_section() -> KeySection:
    """Return the signs in charts."""
    rows = tuple((*entry, "") for entry in legend())
    return KeySection("signs in charts", "", rows)


def _row(
    binding: Binding,
    user: Mapping[str, str],
    active: Mapping[str, ActiveBinding] | None = None,
) -> KeyRow:
    keys = user.get(binding.id or "", binding.key).split(",")
    if active is not None and not binding.priority:
        keys = [key for key in keys if _means(active.get(key), binding)]
    if binding.id == "run.1" and keys:
        return _RUNS_ROW
    return " ".join(map(key_name, keys)), binding.description, binding.id or ""


def own_section(
    kind: type[App[Any]], base: type[App[Any]], user: Mapping[str, str]
) -> KeySection:
    """Return the keys that a kind of app has and the one it extends has not."""
    own = (one for one in described(kind) if one not in base.BINDINGS)
    return KeySection("", "In a replay", tuple(_row(one, user) for one in own))


def described(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the keys of a class that have a description; those of further runs stand with the
    first's.
    """
    for one in kind.BINDINGS:
        if isinstance(one, Binding) and one.description and one.id not in _OTHER_RUNS:
            yield one


def _means(found: ActiveBinding | None, binding: Binding) -> bool:
    """Return True if a key has the meaning of a binding, also where another screen passes it on to
    the app.
    """
    if found is None:
        return False
    actions = found.binding.action, binding.action
    return len({one.removeprefix("app.") for one in actions}) == 1


def _sorted_by_task(places: Sequence[_Place]) -> list[_Place]:
    return sorted(places, key=lambda one: TASKS.index(one.declared.task))


def _declared(*, screens: bool) -> list[_Place]:
    """Return the sections that screens declare, or panels and lists, in their order."""
    kinds = [kind for kind in all_kinds() if issubclass(kind, Screen) == screens]
    found = ((kind.__dict__.get("HELP_SECTION"), kind) for kind in kinds)
    declared = [_Place(one, (kind, *one.also)) for one, kind in found if one]
    return sorted(declared, key=lambda one: (one.declared.rank, one.declared.title))


def _of(nodes: Sequence[DOMNode], known: Sequence[_Place]) -> list[_Place]:
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


def _by_task(title: str, kinds: tuple[type[DOMNode], ...]) -> list[_Place]:
    """Return a section for each task that classes may have keys for."""
    return [
        _Place(HelpSection(title, task=task), kinds, by_task=True) for task in TASKS
    ]
