"""What the tests of the list-like panels share: an app with one panel, and runs to show in it."""

from __future__ import annotations

import math
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from textual.app import App, ComposeResult

from verl_tui.records import Batch, Progress, Rows, SourceStatus
from verl_tui.rendering.session.snapshot import View
from verl_tui.runs.run import Run
from verl_tui.runs.views.devices import DeviceHistory
from verl_tui.tui.widgets import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

    from verl_tui.health.finding import Verdict
    from verl_tui.monitor import Monitor
    from verl_tui.records import GpuReading
    from verl_tui.tui.panels.panel import Panel

NOW = 1_800_000_000.0
SIZES = [(120, 20), (40, 12), (28, 16), (20, 5), (5, 2), (1, 1)]
HOSTILE = (
    "[red]not red[/red] [/INST] [@click=app.quit]quit[/] [/",
    "数学强化学习" * 50,
    "👍🏽🚀" * 100,
    "x" * 300,
    "line\nbreak \x1b[31m \u202e \x00",
    "",
)


class Host(App[None]):
    """Nothing but one panel; counts how often it is repainted, and keeps what it says."""

    def __init__(self, panel: Panel, *, narrow: bool = False) -> None:
        super().__init__()
        self.panel = panel
        self.narrow = narrow
        self.said: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.screen.set_class(self.narrow, "-narrow")
        self.panel.query_one(rows.Rows).focus()

    def on_runs_panel_picked(self, message: Any) -> None:
        self.said.append(message.name)

    def on_health_panel_followed(self, message: Any) -> None:
        self.said.append(message.finding.id)

    @property
    def lines(self) -> list[str]:
        """The screen as text; each of its rows is exactly as wide as the screen."""
        strips = self.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {self.size.width}
        return [strip.text for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def subtitle_words(self) -> str:
        return str(self.panel.border_subtitle or "")


def make_run(
    name: str = "grpo",
    steps: int = 120,
    total: int | None = 500,
    *,
    columns: Mapping[str, Iterable[float]] | None = None,
    quiet: float = 0.0,
) -> Run:
    """Return a run with a step every 30 s, the last one `quiet` seconds ago."""
    run = Run(name)
    numbers = list(range(1, steps + 1))
    data = {"critic/score/mean": [1 - math.exp(-n / 60) for n in numbers], **(columns or {})}
    times = [NOW - quiet - (steps - n) * 30.0 for n in numbers]
    values = [list(column)[:steps] for column in data.values()]
    table = Rows(tuple(data), numbers, values, list(range(steps)), times)
    status = SourceStatus(f"/logs/{name}", "verl", modified=NOW - quiet, size=100, bytes_read=45)
    run.apply(Batch(name, status, (table, Progress(steps, total)) if steps else ()), NOW)
    return run


def make_view(
    *runs: Run,
    verdicts: Mapping[str, Verdict] | None = None,
    gpus: GpuReading | None = None,
    rules: Iterable[str] = ("kl-high", "kl-low", "reward-low"),
    **more: Any,
) -> View:
    """Return a view of these runs that shows the first."""
    guide = SimpleNamespace(
        rules=[SimpleNamespace(id=rule) for rule in rules], silenced=frozenset()
    )
    monitor = SimpleNamespace(
        runs={run.name: run for run in runs},
        verdicts=dict(verdicts or {}),
        gpus=gpus,
        gpu_history=DeviceHistory(),
        guide=guide,
        problems=more.pop("problems", ()),
        passed=more.pop("passed", ()),
        waiting=more.pop("waiting", ()),
        unreached=more.pop("unreached", ()),
        loaded=lambda: 0.45,
    )
    monitor.sentences = (*monitor.problems, *monitor.waiting)
    return View(
        **{
            "monitor": cast("Monitor", monitor),
            "run": runs[0] if runs else None,
            "now": NOW,
            **more,
        }
    )


def count_paints(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count from now on how often rows are asked to repaint, and how often a row is painted
    otherwise than before.
    """
    counts: Counter[str] = Counter()
    refresh, render = rows.Rows.refresh, rows.Rows.render_line

    def counted_refresh(self: rows.Rows, *regions: Any, **options: Any) -> rows.Rows:
        counts["refresh"] += 1
        return refresh(self, *regions, **options)

    def counted_render(self: rows.Rows, *row: Any) -> Any:
        counts["render"] += 1
        return render(self, *row)

    monkeypatch.setattr(rows.Rows, "refresh", counted_refresh)
    monkeypatch.setattr(rows.Rows, "render_line", counted_render)
    return counts
