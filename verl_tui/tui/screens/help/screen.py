"""All keys, from the same tables that make them work."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.containers import Container
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip

from verl_tui.rendering.charts.legend import legend
from verl_tui.rendering.metrics import filter
from verl_tui.rendering.run_list.entry_rows import badges, signs
from verl_tui.rendering.samples import query
from verl_tui.rendering.text.wrap import fit, wrap
from verl_tui.tui.base_app import TerminalApp
from verl_tui.tui.keys.commands import keys_given
from verl_tui.tui.keys.names import key_name
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.compare.screen import CompareScreen
from verl_tui.tui.screens.config.screen import ConfigScreen
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.dashboard_layout import DashboardLayout
from verl_tui.tui.screens.history.screen import HistoryScreen
from verl_tui.tui.screens.log.screen import LogScreen
from verl_tui.tui.screens.metrics.screen import MetricsScreen
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.screens.samples.screen import SamplesScreen
from verl_tui.tui.screens.sources.screen import SourcesScreen
from verl_tui.tui.screens.timing.screen import TimingScreen
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from textual.app import App, ComposeResult
    from textual.binding import ActiveBinding, BindingType
    from textual.dom import DOMNode

_Row = Sequence[tuple[str, "Style | None"]]
_BOLD, _DIM = Style(bold=True), Style(dim=True)
_EVERYWHERE = "everywhere"
_MANY = {f"run.{n}" for n in range(2, 10)}
_ROOMY = 56
"""Cells from which on keys stand in a wide column, and the names of actions beside what they do."""


def _run_signs(*, ascii_only: bool) -> tuple[str, ...]:
    return (
        f"before a name: {badges(ascii_only=ascii_only)}",
        f"after a name: {signs(ascii_only=ascii_only)}",
    )


class _Section(NamedTuple):
    """Keys that hold in one place."""

    title: str
    owners: tuple[type[DOMNode], ...]
    notes: Callable[..., tuple[str, ...]] = lambda **_: ()
    """Returns further lines, in ASCII where nothing else can be shown (`ascii_only`)."""


_PANELS = (
    _Section("charts, while they have the focus", (ChartsPanel, Plot)),
    _Section("health, while it has the focus", (HealthPanel,)),
    _Section("samples, while they have the focus", (SamplesPanel,)),
    _Section("runs, while they have the focus", (RunsPanel,), _run_signs),
    _Section("gpus, while they have the focus", (GpusPanel,)),
    _Section("lists, while they have the focus", (Rows,)),
)
_SCREENS = (
    _Section("a chart over the full screen", (ZoomScreen, Plot)),
    _Section(
        "all samples of a step, over the full screen", (SamplesScreen,), lambda **_: query.HELP
    ),
    _Section("all metrics", (MetricsScreen,), lambda **_: filter.HELP),
    _Section("log", (LogScreen,)),
    _Section("compare", (CompareScreen, Overlay)),
    _Section("configuration", (ConfigScreen, Overlay)),
    _Section("timing", (TimingScreen, Overlay)),
    _Section("sources", (SourcesScreen, Overlay)),
    _Section("finding history", (HistoryScreen, Overlay)),
)
_MAIN = (DashboardLayout, Dashboard)
"""What the main screen is made of: the arrangement of its panels has keys of its own."""


class HelpScreen(BufferedScreen[None], ModalScreen[None]):
    """A list of all keys: of the screen in front, everywhere, then place by place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Back", show=False)
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        /* What shines through would be blended row by row: half of the work. */
        background: $background;
        &:ansi { background: ansi_default; }
        & > Container {
            width: 84;
            max-width: 100%;
            height: 90%;
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
            padding: 0 1;
        }
        &.-narrow > Container { height: 100%; }
        &.-line > Container, &.-pair > Container { border: none; height: 100%; }
    }
    """

    def compose(self) -> ComposeResult:
        """A frame with scrolling rows."""
        with Container() as frame:
            frame.border_title = "keys"
            yield Rows(id="help")

    def on_mount(self) -> None:
        """Listen to the keys at once."""
        self.query(Rows).focus()  # none where the app ends meanwhile

    def redraw(self) -> None:
        """Fill the rows: those in sight, and once the screen is seen all of them."""
        if (rows := self.query_one_optional(Rows)) is None:
            return  # the app is ending
        names = (
            " · the names are for [keys] in the configuration" if rows.size.width > _ROOMY else ""
        )
        self.query_one(Container).border_subtitle = Content(f"esc closes{names}")
        # One cell is the scroll bar's, which there always is but on the tallest of screens.
        lines = _rows(self.app, max(1, rows.size.width - 1))
        if rows.virtual_size.height:
            _fill(rows, list(lines))
        else:
            first = list(islice(lines, rows.size.height))
            _fill(rows, first)
            self.call_later(lambda: _fill(rows, [*first, *lines]))


def _fill(rows: Rows, lines: Sequence[_Row]) -> None:
    rows.set_strips(
        LazyStrips(len(lines), lambda at: Strip([Segment(*piece) for piece in lines[at]]))
    )


def _rows(app: App[object], width: int) -> Iterator[_Row]:
    below = app.screen_stack[-2] if len(app.screen_stack) > 1 else None
    ascii_only = getattr(app, "ascii_only", False)
    sections = _sections(app, below.focused if below is not None else None)
    first_charts = next(
        section for section in sections if {Plot, MetricsScreen} & {*section.owners}
    )
    for section in sections:
        everywhere = section.title == _EVERYWHERE
        held = (below.active_bindings if below is not None else {}) if everywhere else None
        told: set[str] = set()
        lines = [line for owner in section.owners for line in _lines(owner, app, width, held, told)]
        if everywhere:
            lines += _line("ctrl+p", "Command palette: every action by its name, themes", "", width)
        if lines:
            yield [(fit(section.title, width), _BOLD)]
            yield from lines
            yield from (
                [(fit(f"  {line}", width), None)] for line in section.notes(ascii_only=ascii_only)
            )
            yield []
        if section is first_charts:
            yield from _signs(width, ascii_only=ascii_only)


def _sections(app: App[object], focused: DOMNode | None) -> list[_Section]:
    """Return all sections: what holds in front comes first, then everywhere, then the others."""
    stack = app.screen_stack
    front = [
        section
        for section in _SCREENS
        if any(isinstance(screen, section.owners[0]) for screen in stack)
    ]
    others = [section for section in _SCREENS if section not in front]
    ours = (
        kind
        for kind in type(app).__mro__
        if issubclass(kind, TerminalApp) and "BINDINGS" in kind.__dict__
    )
    everywhere = _Section(_EVERYWHERE, (*ours, *(() if front else _MAIN)))
    if front:
        others.insert(0, _Section("the dashboard, while nothing is over it", _MAIN))
    around = tuple(focused.ancestors_with_self) if focused is not None and not front else ()
    within = [
        section
        for section in _PANELS
        if any(isinstance(node, section.owners[0]) for node in around)
    ]
    without = [section for section in _PANELS if section not in within]
    return [*reversed(front), *within, everywhere, *without, *others]


def _lines(
    owner: type[DOMNode],
    app: App[object],
    width: int,
    held: Mapping[str, ActiveBinding] | None,
    told: set[str],
) -> Iterator[_Row]:
    """Yield lines for each of a class's own bindings, under the keys the user has given them.

    Args:
        owner: The class.
        app: The app.
        width: Cells of a line.
        held: What keys mean in front: keys that mean something else there are left out; None for
            all.
        told: Names of what has been told, by a class that is a kind of this one: it is told once.
    """
    for binding in owner.BINDINGS:
        if (
            not isinstance(binding, Binding)
            or not binding.description
            or binding.id in (*_MANY, *told)
        ):
            continue
        told |= {binding.id} if binding.id else set()
        keys = keys_given(app, binding)
        if held is not None and not binding.priority:
            keys = [key for key in keys if _means(held.get(key), binding)]
        if keys and binding.id == "run.1":
            yield from _line("1 … 9", "Run by its number", "run.1 … run.9", width)
        elif keys:
            ascii_only = getattr(app, "ascii_only", False)
            named = " ".join(key_name(key, ascii_only=ascii_only) for key in keys)
            yield from _line(named, binding.description, binding.id or "", width)


def _means(found: ActiveBinding | None, binding: Binding) -> bool:
    """Tell whether a key has the meaning of a binding, be it that another screen passes it on to
    the app.
    """
    return found is not None and found.binding.action.removeprefix("app.") == binding.action


def _line(keys: str, words: str, name: str, width: int) -> Iterator[_Row]:
    """Yield what keys do, and where there is room the name by which the configuration changes
    them.
    """
    beside = width >= _ROOMY
    start = max(18 if beside else 9, len(keys) + 1) + 2
    room = width - start - (len(name) + 2 if beside else 0)
    first, *more = wrap(words, max(8, room))
    yield [
        (fit(f"  {keys}".ljust(start) + first.ljust(room), width), None),
        (f"  {name}" if beside else "", _DIM),
    ]
    yield from ([(fit(" " * start + line, width), None)] for line in more)


def _signs(width: int, *, ascii_only: bool) -> Iterator[_Row]:
    """Yield what the signs in charts mean."""
    entries = list(legend(ascii_only=ascii_only))
    start = max(18 if width >= _ROOMY else 0, *(len(entry.sign) for entry in entries)) + 4
    yield [(fit("signs in charts", width), _BOLD)]
    for entry in entries:
        first, *more = wrap(entry.means, max(8, width - start))
        sign = (f"  {entry.sign}".ljust(start), _DIM if entry.faint else None)
        yield [sign, (fit(first, max(0, width - start)), None)]
        yield from ([(fit(" " * start + line, width), None)] for line in more)
    yield []
