"""All runs, one to three rows each: how they are, how far they are, whether anything still comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from verl_tui.health.finding import Severity
from verl_tui.runs.state import remaining, silence, state
from verl_tui.times import age, duration
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.numbers import exact_step
from verl_tui.tui.widgets.run_rows import ROLES, RunEntry, columns, glyph, pairs, short, triples
from verl_tui.tui.widgets.spark import gauge
from verl_tui.tui.widgets.words import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from verl_tui.health.finding import Finding
    from verl_tui.runs.run import Run
    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.words import Pieces

_ONE_ROW = 78
"""From this width on a run takes one row of columns."""
_TWO_ROWS = 24
"""From this width on two rows, three where there is room; below, and on narrow screens, one short one."""
_MOST = 99
"""Findings that are counted: more digits would take the room of names."""
_CROWD = 4
"""So many runs have two rows each even where they must scroll; more get one."""


class RunsPanel(TextPanel):
    """The list of runs; choosing one asks the app to show it."""

    TITLE = "runs"
    PREFIX = "runs"
    GROUNDED = frozenset({"bar"})
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"runs--{role}" for role in ROLES}
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
    """

    class Picked(Message):
        """The user chose a run."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Entries(marked=3)
        self._filter = ""
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

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width, height = self._rows.size
        if view is None or width < 1 or height < 1:
            return
        entries = self._entries(view)
        tall = self._tall(len(entries), width, height)
        above = [_loading(view, width)] if view.loading else []
        if len(above) + len(entries) * tall > height:
            width -= 1  # the scroll bar
        body = self._lay_out(entries, tall, width, view) if entries else self._nothing(view, width)
        heads = range(len(above), len(above) + len(entries) * tall, tall)
        self._names = [entry.name for entry in entries]
        self._rows.set_entries(self.texts([*above, *body]), heads, heads.stop)
        self._mark(width, height)
        total = len(view.monitor.runs)
        fewer = len(entries) < total
        self.subtitle(f"{len(entries)} of {total}" if fewer else str(total) if total > 1 else "")

    def _tall(self, entries: int, width: int, height: int) -> int:
        """Return how many rows each run takes."""
        narrow = self.screen.has_class("-narrow") or not _TWO_ROWS <= width < _ONE_ROW
        if narrow or entries * 2 > max(height, 2 * _CROWD) or height < 4:
            return 1
        return 3 if entries * 3 <= height else 2

    def _lay_out(self, entries: list[RunEntry], tall: int, width: int, view: View) -> list[Pieces]:
        if tall == 3:
            return triples(entries, width, ascii_only=view.ascii)
        if tall == 2:
            return pairs(entries, width, ascii_only=view.ascii)
        if width >= _ONE_ROW - 1:
            return columns(entries, width, ascii_only=view.ascii)
        return [short(entry, width, ascii_only=view.ascii) for entry in entries]

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

    def _entries(self, view: View) -> list[RunEntry]:
        wanted = self._filter.casefold()
        runs = [*enumerate(view.monitor.runs.values(), 1)]
        matching = [(number, run) for number, run in runs if wanted in run.name.casefold()]
        matching = matching or runs  # what names no run is meant for metrics
        counts = {run.name: _count(view, run) for _, run in matching}
        digits = max(map(len, counts.values()), default=0)
        return [_entry(view, run, number, counts[run.name].ljust(digits)) for number, run in matching]


def _entry(view: View, run: Run, number: int, count: str) -> RunEntry:
    step, total = run.step, run.total_steps
    left = remaining(run, view.now)
    quiet = silence(run, view.now)
    return RunEntry(
        name=run.name,
        number=str(number) if number < 10 else " ",
        badge=_badge(view, run),
        count=count,
        state=state(run, view.now),
        steps="" if step is None else exact_step(step) + (f"/{exact_step(total)}" if total else ""),
        share=min(1.0, max(0.0, step / total)) if step is not None and total else None,
        eta="" if left is None else duration(left),
        age="" if quiet is None else age(quiet),
        reward=run.indicator("reward"),
        shown=view.run is run,
    )


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
