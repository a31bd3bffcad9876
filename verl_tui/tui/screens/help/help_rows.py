"""The rows of the help: keys as the user has them, what they do, and the signs in charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from textual.binding import Binding

from verl_tui.rendering.charts.legend import legend
from verl_tui.rendering.text.wrap import fit, wrap
from verl_tui.tui.keys.bindings import keys_given
from verl_tui.tui.keys.key_names import key_name
from verl_tui.tui.keys.tasks import MOVE
from verl_tui.tui.screens.help.sections import sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual.app import App
    from textual.binding import ActiveBinding
    from textual.dom import DOMNode

    from verl_tui.tui.keys.help_section import HelpSection
    from verl_tui.tui.screens.help.sections import KeySection

HelpRow = Sequence[tuple[str, "Style | None"]]
_BOLD = Style(bold=True)
_DIM = Style(dim=True)
FIRST_RUN = "run.1"
_OTHER_RUNS = {f"run.{n}" for n in range(2, 10)}
RUNS_ROW = ("1 … 9", "Run by its number", "run.1 … run.9")
"""The one row for the keys of all runs, which stands where that of the first would."""
PALETTE_ROW = ("ctrl+p", "Command palette: every action by its name, themes", "")
"""Textual's own key, which is not declared here."""
ROOMY = 56
"""Cells from which on keys stand in a wide column, and the names of actions beside what they do."""


def help_rows(app: App[object], width: int) -> Iterator[HelpRow]:
    """Yield all rows: section by section, the signs in charts behind the first one with charts."""
    below = app.screen_stack[-2] if len(app.screen_stack) > 1 else None
    writer = _RowWriter(app, width, below.active_bindings if below is not None else {})
    signs_due = True
    for section in sections(app, below.focused if below is not None else None):
        yield from writer.section(section)
        if section.declared.charts and signs_due:
            signs_due = False
            yield from writer.signs()


class _RowWriter:
    """Writes rows of one width."""

    def __init__(
        self, app: App[object], width: int, active: Mapping[str, ActiveBinding]
    ) -> None:
        """Make the writer.

        Args:
            app: The app.
            width: Cells of a row.
            active: The meaning of each key in the screen below the help.
        """
        self._app = app
        self._width = width
        self._active = active

    def section(self, section: KeySection) -> Iterator[HelpRow]:
        """Yield a title, keys and notes; nothing where no key is left."""
        names: set[str] = set()
        rows: list[HelpRow] = []
        for kind in section.kinds:
            rows += self._keys_of(kind, names, section)
        if section.everywhere and section.declared.task == MOVE:
            rows += self._row(*PALETTE_ROW)
        if not rows:
            return
        declared = section.declared
        yield self._title(declared)
        yield from rows
        for note in declared.notes:
            yield [(fit(f"  {note}", self._width), None)]
        yield []

    def _title(self, declared: HelpSection) -> HelpRow:
        """Return what keys are for, and where they hold."""
        task = fit(declared.task.description, self._width)
        return [
            (task, _BOLD),
            (fit(f" · {declared.title}", self._width - len(task)), _DIM),
        ]

    def signs(self) -> Iterator[HelpRow]:
        """Yield the signs in charts with their meanings."""
        width = self._width
        entries = list(legend())
        longest = max(len(entry.sign) for entry in entries)
        start = max(18 if width >= ROOMY else 0, longest) + 4
        yield [(fit("signs in charts", width), _BOLD)]
        for entry in entries:
            first, *more = wrap(entry.means, max(8, width - start))
            sign = (f"  {entry.sign}".ljust(start), _DIM if entry.faint else None)
            yield [sign, (fit(first, max(0, width - start)), None)]
            yield from ([(fit(" " * start + line, width), None)] for line in more)
        yield []

    def _keys_of(
        self, kind: type[DOMNode], names: set[str], section: KeySection
    ) -> Iterator[HelpRow]:
        """Yield rows for each of a class's own keys.

        Args:
            kind: The class.
            names: Names of keys that are listed already, by a class that is a kind of this one.
            section: The section they are for: its tasks alone, and where it holds everywhere not
                those keys that mean something else in the screen below the help.
        """
        for binding in described(kind):
            if binding.id in names or not section.lists(binding):
                continue
            names |= {binding.id} if binding.id else set()
            keys = keys_given(self._app, binding)
            if section.everywhere:
                keys = self._in_front(keys, binding)
            if keys:
                yield from self._row_of(binding, keys)

    def _row_of(self, binding: Binding, keys: list[str]) -> Iterator[HelpRow]:
        """Return the rows of a binding; one for the keys of all runs."""
        if binding.id == FIRST_RUN:
            return self._row(*RUNS_ROW)
        named = " ".join(key_name(key) for key in keys)
        return self._row(named, binding.description, binding.id or "")

    def _in_front(self, keys: list[str], binding: Binding) -> list[str]:
        """Return those keys of a binding that have its meaning in the screen below the help."""
        return [
            key
            for key in keys
            if binding.priority or _means(self._active.get(key), binding)
        ]

    def _row(self, keys: str, words: str, name: str) -> Iterator[HelpRow]:
        """Yield what keys do, and where there is room the name by which the configuration changes
        them.
        """
        width = self._width
        beside = width >= ROOMY
        start = max(18 if beside else 9, len(keys) + 1) + 2
        room = width - start - (len(name) + 2 if beside else 0)
        first, *more = wrap(words, max(8, room))
        yield [
            (fit(f"  {keys}".ljust(start) + first.ljust(room), width), None),
            (f"  {name}" if beside else "", _DIM),
        ]
        yield from ([(fit(" " * start + line, width), None)] for line in more)


def described(kind: type[DOMNode]) -> Iterator[Binding]:
    """Yield the keys of a class that have a description; those of further runs stand with the
    first's.
    """
    for binding in kind.BINDINGS:
        if (
            isinstance(binding, Binding)
            and binding.description
            and binding.id not in _OTHER_RUNS
        ):
            yield binding


def _means(found: ActiveBinding | None, binding: Binding) -> bool:
    """Return True if a key has the meaning of a binding, also where another screen passes it on to
    the app.
    """
    return (
        found is not None
        and found.binding.action.removeprefix("app.") == binding.action
    )
