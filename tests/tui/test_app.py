"""The app as a whole: keys, help, palette, themes, and charts over the full screen."""

from __future__ import annotations

import asyncio

import pytest
from inside_textual import notices
from textual.binding import Binding
from watching import (
    Typed,
    check_layout,
    dashboard,
    in_sight,
    lines,
    loaded,
    press,
    settle,
    showing,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.rendering.session.preferences import StateFile
from verl_tui.tui.app import VerlApp
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.help import HelpScreen
from verl_tui.tui.screens.sources import SourcesScreen
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.rows import Rows

BINDINGS = [
    binding
    for owner in (
        VerlApp,
        Dashboard,
        ChartsPanel,
        Chart,
        HealthPanel,
        SamplesPanel,
        RunsPanel,
        GpusPanel,
        Rows,
    )
    for binding in owner.BINDINGS
    if isinstance(binding, Binding)
]


# -- keys ------------------------------------------------------------------------------------------


async def test_every_key_does_no_harm_at_any_size(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        keys = [key for binding in BINDINGS for key in binding.key.split(",")]
        harmless = [key for key in dict.fromkeys(keys) if key not in ("q", "ctrl+z")]
        assert len(harmless) > 50
        for key in harmless:
            await pilot.press(key)
            lines(app)
        await pilot.resize_terminal(40, 12)
        assert app.is_running
        lines(app)


async def test_help_lists_every_binding(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        check_layout(app)
        said = app.screen.query_one("#list", Rows).plain
        named = [
            binding
            for binding in BINDINGS
            if not (binding.id or "").startswith("run.") and binding.description
        ]
        assert all(binding.description in said for binding in named)
        assert "Run by its number" in said
        assert "ctrl+p" in said
        # Actions are named as the configuration does, also where there is less room.
        await pilot.resize_terminal(80, 24)
        rows = app.screen.query_one("#list", Rows).plain.splitlines()
        last = {row.split()[-1] for row in rows if row.split()}
        assert {binding.id for binding in named if binding.id} <= last
        await press(pilot, "escape")
        assert app.screen is dashboard(app)


async def test_keys_can_be_remapped(demo, monkeypatch):
    monkeypatch.setattr(
        demo,
        "config",
        Config(keys={"pause": "space,f9", "quit": "ctrl+q", "run.next": "m"}),
    )
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "m")
        assert "run_grpo_high_lr" in lines(app)[0]
        await press(pilot, "right_square_bracket", "q")
        assert "run_grpo_high_lr" in lines(app)[0]
        await press(pilot, "f9")
        await pilot.resize_terminal(200, 40)
        assert "PAUSED, space goes on" in lines(app)[0]
        await pilot.resize_terminal(120, 40)
        await press(pilot, "question_mark")
        said = app.screen.query_one("#list", Rows).plain.splitlines()
        words = [line.split() for line in said]
        assert ["space", "f9", "Pause", "pause"] in words
        assert ["m", "Next", "run", "run.next"] in words
        await press(pilot, "escape", "ctrl+q")
    assert app.return_code == 0


@pytest.mark.parametrize(
    "wanted",
    [
        (("f3", "zoom panel", "charts"), ("f6", "sources", "sources of")),
        pytest.param((("f2", "x axis", "x: time"), ("f6", "pause", "PAUSED")), marks=pytest.mark.thorough),
    ],
)  # fmt: skip
async def test_the_palette_does_what_the_keys_do(demo, wanted):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "f6")
        # Every action is in it once.
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert len(titles) == len(set(titles))
        assert {
            "Quit",
            "Help",
            "Filter",
            "Zoom panel",
            "Samples: best sample",
            "Run 3",
            "Theme",
        } <= set(titles)
        for focus, words, title in wanted:
            await press(pilot, focus)
            before = text(app)
            await press(pilot, "ctrl+p", Typed(words))
            await until(pilot, lambda words=words: f"  {words}" in text(app).lower())
            await press(pilot, "enter")
            await until(
                pilot,
                lambda: (
                    not app.screen.is_modal or isinstance(app.screen, SourcesScreen)
                ),
            )
            if words == "zoom panel":
                await until(pilot, lambda title=title: in_sight(app) == {title})
                await press(pilot, "z")
            else:
                assert title not in before
                await until(pilot, lambda title=title: title in text(app))


# -- charts over the full screen -------------------------------------------------------------------


async def test_an_unknown_theme_is_reported(demo, monkeypatch):
    monkeypatch.setattr(demo, "config", Config(theme="[red]none"))
    app = showing(demo)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settle(pilot)
        assert any("no theme is called [red]none" in words for words in notices(app))
    await asyncio.sleep(0)


async def test_what_has_changed_since_the_last_time_goes_with_the_first_key(tmp_path):
    state = tmp_path / "state.json"
    for steps, said in ((20, False), (30, True), (30, False)):
        run = write_run(tmp_path / str(steps) / str(said), "run", steps)
        first = tmp_path / "run.jsonl"
        first.write_bytes(run.read_bytes())
        app = loaded(first, state_file=StateFile(state))
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await press(pilot)
            assert ("+10 steps" in text(app)) == said
            await press(pilot, "j")
            assert "+10 steps" not in text(app)
