"""The app as a whole: keys, pause, palette, help, what it costs to show nothing new, and logs read
live.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import replace
from shutil import rmtree
from threading import Thread, current_thread
from threading import enumerate as threads
from typing import TYPE_CHECKING

import pytest
from inside_textual import count_frames, notices
from textual.binding import Binding
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    in_sight,
    lines,
    loaded,
    names,
    press,
    quiet,
    records,
    settle,
    showing,
    start,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.records import Batch, GpuReading, Preview, SourceStatus
from verl_tui.sources.discovery.finder import Discovery
from verl_tui.tui import monitor_app, sliced_judging
from verl_tui.tui.app import VerlApp
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.gpus import GpusPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.help.screen import HelpScreen
from verl_tui.tui.screens.sources.screen import SourcesScreen
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor, News
    from verl_tui.reading import NewsSource

BINDINGS = [
    binding
    for owner in (
        VerlApp,
        Dashboard,
        ChartsPanel,
        Plot,
        HealthPanel,
        SamplesPanel,
        RunsPanel,
        GpusPanel,
        Rows,
    )
    for binding in owner.BINDINGS
    if isinstance(binding, Binding)
]


def live(*specs: Path | str, **settings: object) -> VerlApp:
    """Return the app reading live, with a clock that stands and hardly any time between
    paintings.
    """
    config = replace(Config(refresh=0.05, gpu_interval=3600.0), **settings)
    return VerlApp([str(spec) for spec in specs], config)


def reading() -> list[Thread]:
    """Return the threads that read logs."""
    return [thread for thread in threads() if thread.name == "logs"]


# -- keys ------------------------------------------------------------------------------------------


async def test_q_quits_with_success(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test() as pilot:
        await press(pilot, "q")
    assert app.return_code == 0
    assert app.return_value == 0


async def test_every_key_does_no_harm_at_any_size(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        keys = [key for binding in BINDINGS for key in binding.key.split(",")]
        harmless = [key for key in dict.fromkeys(keys) if key not in ("q", "ctrl+z")]
        assert len(harmless) > 50
        await pilot.press(*harmless)
        await pilot.resize_terminal(40, 12)
        await settle(pilot)
        assert app.is_running
        lines(app)


async def test_help_lists_every_binding(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        check_layout(app)
        said = "\n".join(strip.text for strip in app.screen.query_one(Rows).strips)
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
        await settle(pilot)
        rows = [strip.text for strip in app.screen.query_one(Rows).strips]
        last = {row.split()[-1] for row in rows if row.split()}
        assert {binding.id for binding in named if binding.id} <= last
        await press(pilot, "escape")
        assert app.screen is dashboard(app)


async def test_help_begins_with_the_screen_in_front(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        for key in ("c", "t", "i", "A", "m", "l", "enter"):
            await press(pilot, key)
            front = app.screen
            assert front is not dashboard(app), key
            await press(pilot, "question_mark")
            assert isinstance(app.screen, HelpScreen)
            said = "\n".join(strip.text for strip in app.screen.query_one(Rows).strips)
            first, *_ = said.split("everywhere")
            for binding in front.BINDINGS:
                assert isinstance(binding, Binding)
                assert binding.description in first
            await press(pilot, "question_mark")
            assert app.screen is front
            await press(pilot, "escape")


async def test_screens_in_ascii_hold_nothing_else(demo: Monitor) -> None:
    app = showing(demo, ascii_only=True)
    async with app.run_test(size=(100, 30)) as pilot:
        # Frames have corners.
        for key in ("question_mark", "i", "t", "c", "A"):
            await press(pilot, key)
            frame = [line for line in lines(app) if "--" in line]
            assert frame, key
            assert all("?-" not in line and "-?" not in line for line in frame)
            await press(pilot, "escape")
        # A chart over the full screen is one of ASCII.
        await press(pilot, "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert "critic/score/mean" in text(app)
        assert text(app).isascii()
        await press(pilot, "escape", "escape")
        await pilot.resize_terminal(120, 40)
        for keys in (
            [],
            ["2", "e"],
            ["f4", "v", "z"],
            ["z", "f6", "u"],
            ["question_mark"],
            ["escape", "i"],
        ):
            await press(pilot, *keys)
            assert text(app).isascii(), keys
        await press(pilot, "escape", "s", "slash", *"zzz")
        assert "no metric matches" in text(app)
        assert text(app).isascii()
        await pilot.resize_terminal(40, 12)
        await press(pilot, "escape")
        assert text(app).isascii()


async def test_the_footer_cuts_no_key(demo: Monitor) -> None:
    app = showing(demo)
    whole = " ".join(
        f"{b.key_display or b.key} {b.description}"
        for b in VerlApp.BINDINGS + Dashboard.BINDINGS
        if b.show
    )
    async with app.run_test(size=(120, 24)) as pilot:
        for width in (120, 80, 60):
            await pilot.resize_terminal(width, 24)
            await settle(pilot)
            shown = lines(app)[-1].split()
            assert "Panel" in shown
            assert " ".join(shown[-2:]) in whole
            await pilot.resize_terminal(160, 24)
            await settle(pilot)
            assert "Pause" in lines(app)[-1]


async def test_help_can_be_read_in_a_side_pane(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(40, 12)) as pilot:
        await press(pilot, "question_mark")
        check_layout(app)
        assert "All metrics" in text(app)
        strips = app.screen.query_one(Rows).strips
        said = " ".join(" ".join(strip.text for strip in strips).split())
        assert "Configuration, differences from other runs" in said, "wrapped, not cut"
        await press(pilot, "G")
        last = [strip.text.strip() for strip in strips if strip.text.strip()][-1]
        assert last in text(app)
        await press(pilot, "q")
        assert app.screen is dashboard(app)


async def test_keys_can_be_remapped(demo: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        demo, "config", Config(keys={"pause": "space,f9", "quit": "ctrl+q", "run.next": "m"})
    )
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "m")
        assert "run_ppo_collapse" in lines(app)[0]
        await press(pilot, "right_square_bracket", "q")
        assert "run_ppo_collapse" in lines(app)[0]
        await press(pilot, "f9")
        assert "PAUSED, space goes on" in lines(app)[0]
        await press(pilot, "question_mark")
        said = [strip.text for strip in app.screen.query_one(Rows).strips]
        assert [line.split() for line in said if line.endswith(" pause")] == [
            ["space", "f9", "Pause", "pause"]
        ]
        assert ["m", "Next", "run", "run.next"] in [line.split() for line in said]
        await press(pilot, "escape", "ctrl+q")
    assert app.return_code == 0


@pytest.mark.parametrize(
    "wanted",
    [
        (("f3", "zoom panel", "charts"), ("f6", "sources", "sources of")),
        pytest.param(
            (("f2", "x axis", "x: time"), ("f6", "pause", "PAUSED")), marks=pytest.mark.thorough
        ),
    ],
)
async def test_the_palette_does_what_the_keys_do(
    demo: Monitor, wanted: tuple[tuple[str, str, str], ...]
) -> None:
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
                pilot, lambda: not app.screen.is_modal or isinstance(app.screen, SourcesScreen)
            )
            if words == "zoom panel":
                await until(pilot, lambda title=title: in_sight(app) == {title})
                await press(pilot, "z")
            else:
                assert title not in before
                await until(pilot, lambda title=title: title in text(app))


# -- charts over the full screen -------------------------------------------------------------------


async def test_enter_zooms_a_chart(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert "critic/score/mean" in text(app)
        assert "└" in text(app)
        assert sum("⠀" < sign <= "⣿" for sign in text(app)) > 100
        check_layout(app)
        await press(pilot, "x")
        assert "step" not in lines(app)[-3]
        await press(pilot, "escape")
        assert app.screen is dashboard(app)
        await press(pilot, "f3", "j", "enter")
        assert "actor/ppo_kl" in text(app)
        await press(pilot, "q")
        assert app.screen is dashboard(app)
        assert app.is_running
        # The key that opens the sources closes them.
        await press(pilot, "i")
        assert isinstance(app.screen, SourcesScreen)
        assert "train.log" in text(app)
        await press(pilot, "i")
        assert app.screen is dashboard(app)


async def test_a_zoomed_chart_grows_with_its_run(tmp_path: Path) -> None:
    app = loaded(write_run(tmp_path, "a").parent)
    async with app.run_test(size=(100, 30)) as pilot:
        await press(pilot, "enter")
        assert "2.5" in lines(app)[0]
        (name,) = names(app)
        table = next(batch for batch in _batches(name, 31, 7.25))
        app.monitor.apply(table, NOW)
        app.tick()
        await settle(pilot)
        assert "7.25" in lines(app)[0]


def _batches(name: str, step: int, reward: float) -> list[Batch]:
    from verl_tui.records import MetricRows

    status = SourceStatus("/more.jsonl", "tutorial JSONL", 5, 1)
    return [
        Batch(
            name,
            status,
            (MetricRows(("rollout/reward_mean",), [step], [[reward]], [0], [NOW]),),
            live=True,
        )
    ]


# -- when it draws ---------------------------------------------------------------------------------


async def frames_of_ticks(app: VerlApp, pilot: Pilot[int], frames: Counter[str]) -> int:
    """Return how many frames are drawn while time passes."""
    frames.clear()
    for _ in range(3):
        app.tick()
        await settle(pilot)
    return frames["frames"]


async def test_nothing_new_draws_nothing(demo: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = count_frames(monkeypatch)
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await start(pilot)
        for size in ((120, 40), (40, 12)):
            if tuple(app.size) != size:
                await pilot.resize_terminal(*size)
            await quiet(pilot)
            assert frames["frames"] > 0
            assert await frames_of_ticks(app, pilot, frames) == 0, size
            await press(pilot, "right_square_bracket")
            assert frames["frames"] > 0, size


@pytest.mark.parametrize(
    "keys",
    [
        ("A", "t", "enter"),
        pytest.param(("i", "c", "question_mark"), marks=pytest.mark.thorough),
    ],
)
async def test_nothing_new_draws_nothing_on_any_screen(
    demo: Monitor, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    frames = count_frames(monkeypatch)
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        for key in keys:
            await press(pilot, key)
            assert app.screen is not dashboard(app), key
            app.tick()
            await quiet(pilot)
            assert await frames_of_ticks(app, pilot, frames) == 0, key
            await press(pilot, "escape")


@pytest.mark.parametrize(
    "key",
    ["t", *(pytest.param(key, marks=pytest.mark.thorough) for key in ("question_mark", "i", "c"))],
)
async def test_the_dashboard_waits_behind_a_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    frames = count_frames(monkeypatch)
    app = loaded(write_run(tmp_path, "a").parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, key)
        frames.clear()
        app.monitor.apply(_batches("a", 77, 1.0)[0], NOW)
        dashboard(app).show(app.view_at(NOW))
        await settle(pilot)
        assert frames["frames"] == 0
        await press(pilot, "escape")
        assert "step 77" in lines(app)[0]


async def test_a_painting_that_waits_does_not_break_the_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = loaded(write_run(tmp_path, "a").parent, config=Config(refresh=0.05))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.paint()
        app.show_troubles()  # with the next painting, which keeps its distance
        await press(pilot, "p")
        app.monitor.apply(_batches("a", 77, 1.0)[0], NOW)
        await pilot.pause(0.1)
        assert "step 77" not in text(app)
        await press(pilot, "p")
        assert "step 77" in text(app)


async def test_a_screen_that_was_covered_while_paused_knows_which_run_is_shown(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        write_run(tmp_path, name)
    app = loaded(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "m", "enter", "left", "l", "p")
        await press(pilot, "right_square_bracket", "escape")
        assert isinstance(app.screen, ZoomScreen)
        assert "b" in lines(app)[0].split()
        await press(pilot, "escape", "escape")  # the cursor has gone with the other run
        assert app.screen is dashboard(app)


# -- live ------------------------------------------------------------------------------------------


async def test_a_run_that_appears_later(tmp_path: Path) -> None:
    app = live(f"{tmp_path}/run_*")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "no run yet" in text(app))
        log = write_run(tmp_path, "run_new", 3)
        await until(pilot, lambda: "run_new" in lines(app)[0] and "step 3" in lines(app)[0])
        with log.open("a") as file:
            file.write(records(4, 9))
        await until(pilot, lambda: "step 9" in lines(app)[0])
        check_layout(app)


async def test_an_empty_directory_says_what_is_looked_for_and_what_to_do(tmp_path: Path) -> None:
    app = live(tmp_path)
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: "no run yet" in lines(app)[0])
        await until(pilot, lambda: "looking for *.jsonl" in text(app))
        assert "a run appears here as soon as it writes a log" in text(app)
        write_run(tmp_path, "run_a", 30)
        await until(pilot, lambda: "step 30" in lines(app)[0])


async def test_a_truncated_file_begins_a_new_segment(tmp_path: Path) -> None:
    log = write_run(tmp_path, "a", 30)
    app = live(log.parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "step 30" in text(app))
        log.write_text(records(11, 12, reward_mean=9.75), encoding="utf-8")
        await until(pilot, lambda: "step 12" in lines(app)[0])
        run = app.monitor.runs["a"]
        series = run.series("rollout/reward_mean")
        assert series is not None
        assert list(series.steps) == list(range(1, 31))
        assert series.values[10] == 9.75
        assert run.restarts


async def test_a_failing_source_hides_nothing_of_the_good_one(tmp_path: Path) -> None:
    log = write_run(tmp_path, "a", 30)
    other = write_run(tmp_path, "b", 2000)
    app = live(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: [run.step for run in app.monitor.runs.values()] == [30, 2000])
        other.unlink()
        other.mkdir()
        with log.open("a") as file:
            file.write(records(31, 33))
        await until(
            pilot,
            lambda: any(state.status.problem for state in app.monitor.runs["b"].sources.values()),
        )
        await until(pilot, lambda: "step 33" in lines(app)[0] and "reading" not in text(app))
        await press(pilot, "right_square_bracket", "i")
        assert "down" in text(app)
        assert "2,000" in text(app)


class _Brought:
    """A reading that brings some news and then no more."""

    def __init__(self, news: Iterable[News], notify: Callable[[], object]) -> None:
        self._notify = notify
        self._news = list(news)

    def start(self) -> None:
        self._notify()

    def stop(self) -> None:
        pass

    def take(self) -> Iterator[News]:
        while self._news:
            yield self._news.pop(0)

    @property
    def waiting(self) -> bool:
        return bool(self._news)


class _AppWithNews(VerlApp):
    def __init__(self, *news: News, config: Config) -> None:
        self._brought = news
        super().__init__([], config)

    def new_reading(self) -> NewsSource:
        return _Brought(self._brought, lambda: self.post_message(self.News()))


async def test_gpus_that_are_read_first_end_no_search_for_logs() -> None:
    app = _AppWithNews(GpuReading(NOW, problem="no NVIDIA driver here"), config=Config())
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "no NVIDIA driver here" in text(app))
        assert "looking for logs" in text(app)
        assert "no run yet" not in text(app)


async def test_the_end_of_a_long_log_is_drawn_without_a_wait() -> None:
    (batch,) = _batches("long", 48_001, 2.5)
    end = batch._replace(status=replace(batch.status, bytes_read=10, size=10_000), live=False)
    news = Discovery((), (), ()), Preview("long", (end,))
    app = _AppWithNews(*news, config=Config(refresh=3600.0))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "step 48001" in text(app))


async def test_r_reads_everything_again(tmp_path: Path) -> None:
    half = '{"scope": "rollout", "step": 31, "rew'
    log = write_run(tmp_path, "a", 30, text=half)
    app, others = live(log.parent), reading()
    async with app.run_test(size=(120, 40)) as pilot:
        # A line that is half written does not keep the screen loading.
        await until(pilot, lambda: "step 30" in text(app) and "nothing found" in text(app))
        await until(pilot, lambda: "reading" not in text(app))  # neither the log nor the GPUs
        # Everything is read again, and what is written then is read.
        before = app.monitor
        await press(pilot, "r")
        assert app.monitor is not before
        await until(pilot, lambda: "step 30" in text(app) and "nothing found" in text(app))
        with log.open("a") as file:
            file.write('ard_mean": 2.5}\n')
        await until(pilot, lambda: "step 31" in text(app))
        # Reading ends with the app.
        (thread,) = (one for one in reading() if one not in others)
    thread.join(60)
    assert not thread.is_alive()


async def test_a_long_history_is_judged_while_keys_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_judging, "JUDGING", 0.0)  # after each rule the screen may answer
    app = live(write_run(tmp_path, "a", 30).parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "step 30" in text(app))
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "escape")
        await until(pilot, lambda: "nothing found" in text(app))


async def test_pause_draws_nothing_while_reading_goes_on(tmp_path: Path) -> None:
    log = write_run(tmp_path, "a")
    app = live(log.parent)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "step 30" in text(app))
        await press(pilot, "p")
        before = text(app)
        assert "PAUSED" in before
        with log.open("a") as file:
            file.write(records(31, 40))
        await until(pilot, lambda: app.monitor.runs["a"].step == 40)
        app.tick()
        await settle(pilot)
        assert text(app) == before
        await press(pilot, "p")
        assert "step 40" in text(app)
        assert "PAUSED" not in text(app)
        # Reading again ends a pause and says so.
        await press(pilot, "p")
        assert "PAUSED" in text(app)
        await press(pilot, "r")
        await until(pilot, lambda: "step 40" in text(app))
        assert "PAUSED" not in text(app)
        await until(pilot, lambda: "no longer paused" in text(app))


async def test_a_run_that_is_deleted_while_shown_says_so_and_goes_when_all_is_read_again(
    tmp_path: Path,
) -> None:
    for name in ("run_a", "run_b"):
        write_run(tmp_path, name, 30)
    app = live(tmp_path, poll_interval=0.05)
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: "step 30" in lines(app)[0] and "run_b" in text(app))
        await press(pilot, "1")
        shown = "run_a" if "run_a" in lines(app)[0] else "run_b"
        rmtree(tmp_path / shown)
        await until(pilot, lambda: "deleted from disk; r drops it" in lines(app)[0])
        assert shown in lines(app)[0], "what was read can still be looked at"
        await press(pilot, "r")
        await until(pilot, lambda: shown not in text(app) and "step 30" in lines(app)[0])


async def test_what_the_first_large_chart_needs_is_loaded_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr("verl_tui.tui.monitor_app.SPARE", 0.01)
    monkeypatch.setattr(
        "verl_tui.tui.monitor_app.load_plotext", lambda: loaded.append(current_thread().name)
    )
    app = live(write_run(tmp_path, "a", 30))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: loaded and "step 30" in text(app))
    assert loaded == ["plotext"], "beside the loop, which answers keys"


async def test_a_wanted_chart_that_nobody_knows_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verl_tui.tui.monitor_app.SPARE", 0.01)
    app = live(write_run(tmp_path, "a", 30), charts=("rewrd", "entropy", "my/later"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: notices(app))
        assert notices(app) == [
            "charts in the configuration: nothing is called rewrd; did you mean reward?"
        ]


async def test_an_unknown_theme_is_reported(demo: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "config", Config(theme="[red]none"))
    app = showing(demo)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settle(pilot)
        assert any("no theme is called [red]none" in words for words in notices(app))
    await asyncio.sleep(0)


async def test_garbage_is_looked_for_now_and_then(
    demo: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        swept.extend([phase] if info["generation"] == 2 else [])

    monkeypatch.setattr(monitor_app, "SWEEP", 0.01)
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        gc.callbacks.append(note)
        try:
            await until(pilot, lambda: len(swept) > 4)
        finally:
            gc.callbacks.remove(note)


async def test_screens_that_were_closed_are_forgotten(
    demo: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The loop keeps a screen's timer, though it was stopped, until its time has come.
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 0.01)
    app = showing(demo)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        opened = []
        for key in ("question_mark", "c", "i") * 4:
            await press(pilot, key)
            opened.append(weakref.ref(app.screen))
            await press(pilot, "escape")

        def few_are_left() -> bool:
            gc.collect()
            return sum(one() is not None for one in opened) < 4

        await until(pilot, few_are_left)
