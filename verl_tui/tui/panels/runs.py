"""All runs, one to three rows each: how they are, how far they are, whether anything still comes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

from rich.cells import cell_len
from textual.binding import Binding
from textual.message import Message

from verl_tui.health.finding import Severity
from verl_tui.runs.pace import ahead
from verl_tui.runs.state import State, silence, state
from verl_tui.times import age, duration
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.panels.run_order import ORDERS, matching, ordered
from verl_tui.tui.selection import LETTERS
from verl_tui.tui.widgets import palette
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.lazy import LazyStrips
from verl_tui.tui.widgets.numbers import exact_step
from verl_tui.tui.widgets.run_rows import ROLES, RunEntry, columns, glyph, pairs, singles, triples
from verl_tui.tui.widgets.spark import gauge
from verl_tui.tui.widgets.words import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.strip import Strip

    from verl_tui.health.finding import Finding
    from verl_tui.runs.run import Run
    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.run_rows import Layout
    from verl_tui.tui.widgets.words import Pieces

_ONE_ROW = 78
"""From this width on a run takes one row of columns."""
_TWO_ROWS = 24
"""From this width on two rows, three where there is room; below, and on narrow screens, one short one."""
_BESIDE = 10
"""Cells beside a name: frame and scroll bar, number, badge and count before it, the sign of the state after it."""
_MOST = 99
"""Findings that are counted: more digits would take the room of names."""
_CROWD = 4
"""So many runs have two rows each even where they must scroll; more get one."""


class RunsPanel(TextPanel):
    """The list of runs; choosing one asks the app to show it."""

    TITLE = "runs"
    FOOTER = (("runs.select", "Select"), ("runs.sort", "Sort"), ("compare", "Compare"))
    PREFIX = "runs"
    GROUNDED = frozenset({"bar"})
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"runs--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Select to compare, or not", show=False, id="runs.select"),
        Binding("s", "sort", "Sort: as found, state, name, reward, activity", show=False, id="runs.sort"),
    ]
    DEFAULT_CSS = """
    RunsPanel {
        & > .runs--ok { color: $text-success; }
        & > .runs--warning { color: $text-warning; }
        & > .runs--critical { color: $text-error; }
        & > .runs--nothing { color: $text-muted; }
        & > .runs--name { color: $foreground; }
        & > .runs--shown { color: $foreground; text-style: bold; }
        & > .runs--dim { color: $text-muted; }
        & > .runs--bar { color: $text-primary; background: $foreground 15%; }
        & > .runs--spark { color: $text-primary; }
        & > .runs--odd { color: $text-error; text-style: bold; }
    }
    """ + palette.rules("RunsPanel", "runs")

    class Picked(Message):
        """The user chose a run."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    class Selected(Message):
        """The user selected a run to be compared, or took that back."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Entries(marked=3)
        self._filter = ""
        self._order = ORDERS[0]
        self._made_of: WeakKeyDictionary[Run, tuple[object, RunEntry]] = WeakKeyDictionary()
        """What was said of each run last, and what it depends on."""
        self._view: View | None = None
        self._names: list[str] = []
        """Names of the entries, in their order."""
        self._chosen: str | None = None
        self._shown: str | None = None
        """The run that was shown last: what the user has chosen since stays until the app shows another."""
        self._revealed: tuple[object, ...] = ()

    @property
    def filter(self) -> str:
        """Only runs whose name contains this are listed, all where none does; case does not matter."""
        return self._filter

    @filter.setter
    def filter(self, text: str) -> None:
        self._filter = text
        self.redraw()

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """List the runs and mark the shown one."""
        self._view = view
        name = view.run.name if view.run else None
        if name != self._shown:
            self._chosen = self._shown = name
        self.redraw()

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Tell which run was chosen."""
        message.stop()
        entry = self._rows.entry_at(message.index)
        if entry is not None:
            self._chosen = self._names[entry]
            self.post_message(self.Picked(self._chosen))

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Nothing more to open: choosing has shown the run."""
        message.stop()

    def listed(self, view: View) -> list[Run]:
        """Return the runs that the filter leaves, in their order."""
        return ordered(matching(view.monitor.runs.values(), self._filter), self._order, view.now)

    def wanted(self, view: View) -> int:
        """Return the cells, with the frame, in which no name has to be cut."""
        return _BESIDE + max(map(cell_len, view.monitor.runs), default=0)

    def clip(self) -> str:
        """Return the paths of the chosen run, as one names them on a command line."""
        run = self._view.monitor.runs.get(self._chosen or "") if self._view is not None else None
        return shlex.join(run.paths) if run is not None else ""

    def action_sort(self) -> None:
        """Sort by something else."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._revealed = ()
        self.redraw()

    def action_select(self) -> None:
        """Select the chosen run to be compared, or take that back."""
        view, name = self._view, self._chosen
        if view is None or name not in view.monitor.runs:
            return
        if view.selection.toggle(name):
            self.post_message(self.Selected())
            self.redraw()
        else:
            self.app.clear_notifications()
            self.notify(f"{len(LETTERS)} runs are compared at most", timeout=3)

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width, height = self._rows.size
        if view is None or width < 1 or height < 1:
            return
        entries = [self._entry(view, run) for run in self.listed(view)]
        tall = self._tall(len(entries), width, height)
        above = [_loading(view, width)] if view.loading else []
        if len(above) + len(entries) * tall > height:
            width -= 1  # the scroll bar
        if not entries:
            above += self._nothing(view, width)
        first, stop = len(above), len(above) + len(entries) * tall
        placed = self._placing(view, entries)
        # The first one tells how wide what comes before the names is.
        layout = self._layout([placed(0), *entries[1:]], tall, width, view) if entries else None

        def row(at: int) -> Strip:
            if layout is None or at < first:
                return self.strip(above[at])
            return self.strip(layout(placed((at - first) // tall))[(at - first) % tall])

        self._names = [entry.name for entry in entries]
        self._rows.set_lazy_entries(LazyStrips(stop, row), range(first, stop, tall), stop)
        self._mark(width, height)
        self.subtitle(self._caption(view, len(entries)))

    def _caption(self, view: View, shown: int) -> str:
        """Say what the list leaves out, how it is sorted and how many are selected."""
        total = len(view.monitor.runs)
        words = [f"{shown} of {total}"] if shown < total else [str(total)] if total > 1 else []
        if self._order != ORDERS[0]:
            words.append(f"by {self._order}")
        if selected := len(view.selected):
            words.append(f"{selected} selected")
        text = (" - " if view.ascii else " · ").join(words)
        return text if len(text) + 4 <= self.size.width else words[-1]

    def _tall(self, entries: int, width: int, height: int) -> int:
        """Return how many rows each run takes."""
        narrow = self.screen.has_class("-narrow") or not _TWO_ROWS <= width < _ONE_ROW
        if narrow or entries * 2 > max(height, 2 * _CROWD) or height < 4:
            return 1
        return 3 if entries * 3 <= height else 2

    def _layout(self, entries: list[RunEntry], tall: int, width: int, view: View) -> Layout:
        if tall == 3:
            return triples(entries, width, ascii_only=view.ascii)
        if tall == 2:
            return pairs(entries, width, ascii_only=view.ascii)
        if width >= _ONE_ROW - 1:
            return columns(entries, width, ascii_only=view.ascii)
        return singles(entries, width, ascii_only=view.ascii)

    def _mark(self, *size: int) -> None:
        """Highlight the chosen run, and scroll to it when it or the room for it has changed."""
        rows = self._rows
        rows.choose(self._names.index(self._chosen) if self._chosen in self._names else None)
        place = (self._chosen, rows.chosen, size)
        if rows.chosen is not None and place != self._revealed:
            rows.reveal(rows.chosen)
        self._revealed = place

    def _nothing(self, view: View, width: int) -> list[Pieces]:
        monitor = view.monitor
        lines = [(line, "dim") for line in ("" if view.loading else "no run yet", *monitor.waiting)]
        lines += [(f"{glyph('warning', ascii_only=view.ascii)} {problem}", "warning") for problem in monitor.problems]
        return [[(part, role)] for line, role in lines for part in wrapped(line, width, ascii_only=view.ascii)]

    def _placing(self, view: View, entries: Sequence[RunEntry]) -> Callable[[int], RunEntry]:
        """Return what tells an entry its place in the list: of two hundred only those in sight need to know."""
        numbers = {name: number for number, name in enumerate(view.monitor.runs, 1)}
        digits = max((len(entry.count) for entry in entries), default=0)

        def placed(at: int) -> RunEntry:
            entry, run = entries[at], view.monitor.runs[entries[at].name]
            return replace(
                entry,
                number=str(numbers[run.name]) if numbers[run.name] < 10 else " ",
                count=entry.count.ljust(digits),
                shown=view.run is run,
                mark=_selected(view, run),
            )

        return placed

    def _entry(self, view: View, run: Run) -> RunEntry:
        """Return what is said of a run; it is not reckoned anew where only a key was pressed."""
        verdict = view.monitor.verdicts.get(run.name)
        key = (view.now, run.revision, verdict, view.attention.revision)
        made = self._made_of.get(run)
        if made is None or made[0] != key:
            made = self._made_of[run] = (key, _entry(view, run))
        return made[1]


def _entry(view: View, run: Run) -> RunEntry:
    step, total = run.step, run.total_steps
    now = state(run, view.now)
    left = ahead(run) if now is State.RUNNING else None
    quiet = silence(run, view.now)
    return RunEntry(
        name=run.name,
        badge=_badge(view, run),
        count=_count(view, run),
        state=now,
        steps="" if step is None else exact_step(step) + (f"/{exact_step(total)}" if total else ""),
        share=min(1.0, max(0.0, step / total)) if step is not None and total else None,
        eta="" if left is None else duration(left.seconds),
        age="" if quiet is None else age(quiet),
        reward=run.indicator("reward"),
    )


def _selected(view: View, run: Run) -> tuple[str, str]:
    """Return the letter that a selected run has wherever it is shown, with its colour."""
    place = view.selection.place(run.name)
    if place is None:
        return ("  " if view.selected else "", "")
    return f"{LETTERS[place]} ", palette.RUNS[place]


def _badge(view: View, run: Run) -> str:
    """Say how a run is; a run of which no rule could judge anything is not called healthy."""
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None or (run.step is None and not verdict.findings):
        return "nothing"
    worst = max((one.severity for one in _open(view, run)), default=None)
    if worst is None:
        guide = getattr(view.monitor, "guide", None)
        skipped = {rule.id for rule in verdict.not_judged}
        return "nothing" if guide is not None and {rule.id for rule in guide.rules} <= skipped else "ok"
    return {Severity.CRITICAL: "critical", Severity.WARNING: "warning"}.get(worst, "ok")


def _open(view: View, run: Run) -> Sequence[Finding]:
    """Return what was found about a run and is not acknowledged."""
    verdict = view.monitor.verdicts.get(run.name)
    return view.attention.open(run.name, verdict.findings) if verdict is not None else ()


def _count(view: View, run: Run) -> str:
    """Count what gives the badge its colour; empty for nothing."""
    bad = sum(finding.severity > Severity.INFO for finding in _open(view, run))
    return str(min(bad, _MOST)) if bad else ""


def _loading(view: View, width: int) -> Pieces:
    share = view.monitor.loaded()
    words = f"reading {int(share * 100)} %"
    room = width - len(words) - 1
    if room < 4:
        return [(words[:width], "dim")]
    return [(f"{words} ", "dim"), (gauge(share, room, ascii_only=view.ascii), "bar")]
