"""Charts that take long are drawn over several frames."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from textual.app import App

from verl_tui.rendering.arrange import Room
from verl_tui.rendering.charts.chart_data import ChartData
from verl_tui.rendering.charts.tiles import PageOfTiles
from verl_tui.tui.widgets import chart as tiled
from verl_tui.tui.widgets.chart import Chart, ChartTiles

CHARTS = [ChartData(key) for key in ("reward", "kl", "loss", "entropy")]


class Tiled(App[None]):
    def compose(self):
        yield ChartTiles(self.tiles, lambda _: CHARTS if self.filled else [])

    filled = False

    def tiles(self, size):
        height = size.height // len(CHARTS)
        rooms = (Room(0, height * at, size.width, height) for at in range(len(CHARTS)))
        return PageOfTiles((*rooms,))

    @property
    def keys(self):
        return [chart.data.key for chart in self.query(Chart)]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
async def test_charts_that_take_long_are_drawn_one_a_frame(monkeypatch, seconds):
    clock = count(0.0, seconds)
    monkeypatch.setattr(tiled, "monotonic", lambda: next(clock))
    seen: list[list[str]] = []
    app = Tiled()
    async with app.run_test(size=(60, 40)) as pilot:
        tiles = app.query_one(ChartTiles)
        await pilot.pause()
        show = Chart.show

        def shown(chart, data):
            show(chart, data)
            seen.append(app.keys)

        monkeypatch.setattr(Chart, "show", shown)
        app.filled = True
        tiles.draw()
        at_once = app.keys
        await pilot.pause()
        assert app.keys == [data.key for data in CHARTS]
    first = ["reward", "", "", ""] if seconds else [data.key for data in CHARTS]
    assert at_once == first
    assert len(seen) == len(CHARTS)
    for before, after in pairwise(seen):
        assert sum(map(bool, after)) == sum(map(bool, before)) + 1
