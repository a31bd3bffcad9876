"""Logs that are read while the app is open: they appear, grow, are cut, deleted and read again."""

from __future__ import annotations

from dataclasses import replace
from shutil import rmtree
from threading import enumerate as threads

from inside_textual import count_frames, notices
from watching import (
    NOW,
    check_layout,
    check_shown,
    lines,
    press,
    quiet,
    records,
    settle,
    shows,
    text,
    until,
    write_run,
)

from verl_tui.config import Config
from verl_tui.records import Gpu, GpuReading
from verl_tui.sources.feed import Feed
from verl_tui.tui import monitor_app
from verl_tui.tui.app import VerlApp


def live(*specs, **settings):
    """Return the app reading live, with a clock that stands and hardly any time between
    paintings.
    """
    config = replace(Config(refresh=0.05, gpu_interval=3600.0), **settings)
    return VerlApp([str(spec) for spec in specs], config)


def reading():
    """Return the threads that read logs."""
    return [thread for thread in threads() if thread.name == "logs"]


class Told:
    """News that are handed over one at a time, as the logs of a step are read."""

    def __init__(self):
        self.news = []

    def start(self):
        """There is no thread."""

    stop = start

    def take(self):
        yield from self.news[:1]
        del self.news[:1]

    @property
    def waiting(self):
        return bool(self.news)


async def test_what_a_step_writes_piece_by_piece_is_drawn_at_once(
    tmp_path, monkeypatch
):
    log, told = write_run(tmp_path, "a"), Told()
    monkeypatch.setattr(VerlApp, "new_reading", lambda _app: told)
    app, feed = live(log), Feed([str(log)])
    found = feed.scan()
    told.news = [found, *feed.read(), replace(found, read=True)]
    async with app.run_test(size=(120, 40)) as pilot:
        app.post_message(app.News())
        await until(pilot, lambda: "step 30" in lines(app)[0])
        await quiet(pilot)
        frames = count_frames(monkeypatch)
        for step in (31, 32):
            with log.open("a") as file:
                file.write(records(step, step))
            told.news += feed.read()
        assert len(told.news) == 2
        app.post_message(app.News())
        await until(pilot, lambda: "step 32" in lines(app)[0])
        assert frames["frames"] == 1


async def test_gpus_are_drawn_with_steps_that_come_often(tmp_path, monkeypatch):
    log, told, seconds = write_run(tmp_path, "a"), Told(), [100.0]
    monkeypatch.setattr(VerlApp, "new_reading", lambda _app: told)
    monkeypatch.setattr(monitor_app, "monotonic", lambda: seconds[0])
    app, feed = live(log), Feed([str(log)])

    def tell(*news):
        told.news += news
        app.post_message(app.News())

    def busy(percent):
        return GpuReading(NOW, (Gpu("0", "H100", percent),))

    found = feed.scan()
    async with app.run_test(size=(140, 45)) as pilot:
        tell(found, *feed.read(), replace(found, read=True), busy(11.0))
        await until(pilot, lambda: "11%" in text(app))
        tell(busy(22.0))
        await quiet(pilot)
        assert "11%" in text(app)
        with log.open("a") as file:
            file.write(records(31, 31))
        tell(*feed.read())
        await until(pilot, lambda: "step 31" in lines(app)[0])
        assert "22%" in text(app)
        seconds[0] += 2
        tell(busy(33.0))
        await until(pilot, lambda: "33%" in text(app))


async def test_a_run_that_appears_later(tmp_path):
    app = live(f"{tmp_path}/run_*")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "no run yet" in text(app))
        log = write_run(tmp_path, "run_new", 3)
        await until(
            pilot, lambda: "run_new" in lines(app)[0] and "step 3" in lines(app)[0]
        )
        with log.open("a") as file:
            file.write(records(4, 9))
        await until(pilot, lambda: "step 9" in lines(app)[0])
        check_layout(app)


async def test_a_failing_source_hides_nothing_of_the_good_one(tmp_path):
    log = write_run(tmp_path, "a", 30)
    other = write_run(tmp_path, "b", 2000)
    app = live(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(
            pilot, lambda: [run.step for run in app.monitor.runs.values()] == [30, 2000]
        )
        other.unlink()
        other.mkdir()
        with log.open("a") as file:
            file.write(records(31, 33))
        await until(
            pilot,
            lambda: any(
                state.status.problem for state in app.monitor.runs["b"].sources.values()
            ),
        )
        await until(
            pilot, lambda: "step 33" in lines(app)[0] and "reading" not in text(app)
        )
        await press(pilot, "right_square_bracket", "i")
        check_shown(app, "down", "2,000")


async def test_r_reads_everything_again(tmp_path):
    half = '{"scope": "rollout", "step": 31, "rew'
    log = write_run(tmp_path, "a", 30, text=half)
    app, others = live(log.parent), reading()
    async with app.run_test(size=(120, 40)) as pilot:
        # A line that is half written does not keep the screen loading.
        await shows(pilot, "step 30", "rules checked it")
        # neither the log nor the GPUs
        await until(pilot, lambda: "reading" not in text(app))
        # Everything is read again, and what is written then is read.
        before = app.monitor
        await press(pilot, "r")
        assert app.monitor is not before
        await shows(pilot, "step 30", "rules checked it")
        with log.open("a") as file:
            file.write('ard_mean": 2.5}\n')
        await until(pilot, lambda: "step 31" in text(app))
        # Reading ends with the app.
        (thread,) = (one for one in reading() if one not in others)
    thread.join(60)
    assert not thread.is_alive()


async def test_what_is_read_again_shows_the_chosen_run(tmp_path):
    for name in "abc":
        write_run(tmp_path, f"run_{name}", 30)
    app = live(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "3 runs")
        await press(pilot, "3")
        chosen = app.view_at(0.0).run.name
        before = app.monitor
        await press(pilot, "r")
        await until(pilot, lambda: app.monitor is not before and "3 runs" in text(app))
        assert [*app.monitor.runs] == [*before.runs]
        assert app.view_at(0.0).run.name == chosen
        assert chosen in lines(app)[0]


async def test_pause_draws_nothing_while_reading_goes_on(tmp_path, monkeypatch):
    log = write_run(tmp_path, "a")
    app, said = live(log.parent), []
    monkeypatch.setattr(app, "notify", lambda words, **_options: said.append(words))
    async with app.run_test(size=(120, 40)) as pilot:
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
        assert said == ["reading everything again: no longer paused"]
        assert "PAUSED" not in text(app)


async def test_a_run_deleted_while_shown_says_so_and_goes_with_the_next_reading(
    tmp_path,
):
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
        await until(
            pilot, lambda: shown not in text(app) and "step 30" in lines(app)[0]
        )


async def test_a_wanted_chart_that_nobody_knows_is_reported(tmp_path):
    app = live(write_run(tmp_path, "a", 30), charts=("rewrd", "entropy", "my/later"))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: notices(app))
        assert notices(app) == [
            "charts in the configuration: nothing is called rewrd; did you mean reward?"
        ]
