"""Runs side by side: figures, differences against the baseline, where they are aligned, and the
screen at any size.
"""

from __future__ import annotations

from jsonl import write_jsonl
from rich.cells import cell_len
from run_views import logged, make_view
from watching import NOW, Typed, check_shown, loaded, names, press, text

from verl_tui.health.guide_settings import load_guide
from verl_tui.records import MetricRows, Settings
from verl_tui.rendering.compare_rows import comparison, where
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.run import Run
from verl_tui.runs.time.step_clocks import Alignment, Stop, stops
from verl_tui.tui.screens.compare import CompareScreen

REWARD, KL, LR = "critic/score/mean", "actor/ppo_kl", "actor_rollout_ref.actor.optim.lr"


def run_of(name, rewards, *, every=30.0, said=None, **more):
    """Return a run whose steps take so many seconds each; None: nothing tells when they were."""
    count = len(rewards)
    same = {key.replace("__", "/"): [value] * count for key, value in more.items()}
    columns = {REWARD: [*rewards], **same}
    times = every and [NOW - (count - at) * every for at in range(1, count + 1)]
    rows = MetricRows(
        tuple(columns), range(1, count + 1), [*columns.values()], range(count), times
    )
    return logged(Run(name), rows, Settings(said or {}, "console"))


def view_of(*runs, **more):
    view = make_view(*runs, **more)
    view.monitor.guide = load_guide()
    return view


def table(view, width=110, alignment=Alignment.END, current=0):
    runs = list(view.monitor.runs.values())
    heading, rows = comparison(view, runs, alignment, width, current)
    rows = [*heading, *rows]
    assert all(sum(cell_len(part) for part, _ in row) <= width for row in rows)
    return [text_of(row).rstrip() for row in rows]


def row(rows, label):
    return next(line[len(label) :].split() for line in rows if line.startswith(label))


def two(**more):
    slow = run_of(
        "x-slow",
        [0.1, 0.7, 0.4],
        every=60.0,
        actor__ppo_kl=0.02,
        said={LR: 1e-6, "data.seed": 1},
    )
    fast = run_of(
        "x-fast",
        [0.2, 0.4, 0.6, 0.8, 0.6],
        actor__ppo_kl=0.05,
        said={LR: 5e-6, "data.seed": 1},
    )
    return view_of(slow, fast, **more)


# -- up to where runs count ------------------------------------------------------------------------


def test_each_at_its_end_at_the_same_step_or_after_the_same_time():
    runs = list(two().monitor.runs.values())
    assert stops(runs, Alignment.END) == [Stop(3, 120.0), Stop(5, 120.0)]
    assert stops(runs, Alignment.STEP) == [Stop(3, 120.0), Stop(3, 60.0)]
    assert stops(runs, Alignment.TIME) == [Stop(3, 120.0), Stop(5, 120.0)]
    short = run_of("short", [0.1, 0.2, 0.3], every=20.0)
    assert stops([*runs, short], Alignment.TIME) == [
        Stop(1, 0.0),
        Stop(2, 30.0),
        Stop(3, 40.0),
    ]
    assert where([*runs, short], Alignment.TIME) == "40s after their start"
    assert where(runs, Alignment.STEP) == "at step 3"


# -- the table -------------------------------------------------------------------------------------


def test_figures_against_the_baseline():
    rows = table(two())
    assert rows[0].split() == ["▸slow", "fast"]
    assert rows[1].split() == ["baseline"]
    assert row(rows, "final reward") == ["0.4", "0.52", "✓", "+30.0%"]
    assert row(rows, "best reward at step") == ["2", "4"]
    assert row(rows, "highest policy KL, nats/token") == ["0.02", "0.05"], (
        "both are in the healthy band"
    )
    assert row(rows, "step time, s") == ["60", "30", "✓", "-50.0%"]
    assert row(rows, "learning rate") == ["1e-06", "5e-06"]
    assert not any(line.startswith("ETA") for line in rows), "both are over"
    assert not any("seed" in line or LR in line for line in rows), (
        "what is the same, or said already, is left out"
    )
    assert "✓ better, ✗ worse than the baseline; = the same" in rows


def test_labels_differ_in_little_room():
    rows = table(two(), 38)
    assert row(rows, "best reward at step") == ["2"]


def test_kl_is_worse_where_it_leaves_its_band():
    calm = run_of("calm", [0.1, 0.2], actor__ppo_kl=0.02)
    wild = run_of("wild", [0.1, 0.2], actor__ppo_kl=0.3)
    label = "highest policy KL, nats/token"
    assert row(table(view_of(calm, wild)), label) == ["0.02", "0.3", "✗", ">+999%"]
    assert row(table(view_of(wild, calm)), label) == ["0.3", "0.02", "✓", "-93.3%"]


def test_long_settings_are_cut_where_they_are_alike():
    recipe = "the same for more than forty characters, then {}"
    runs = (
        run_of(name, [0.1], said={"data.recipe": recipe.format(name)}) for name in "ab"
    )
    found = next(row for row in table(view_of(*runs)) if "then b" in row)
    assert "then a" in found


# -- on the screen ---------------------------------------------------------------------------------


def write(directory, count=5, steps=12):
    for n in range(count):
        lines = [
            {"step": step, "data": {REWARD: 0.1 * n + step / 100, KL: 0.01 * (n + 1), "timing_s/step": 20.0 + n}}
            for step in range(1, steps + n)
        ]  # fmt: skip
        write_jsonl(directory / f"gsm8k-run-{n}" / "train.jsonl", lines)
    return directory


async def test_selected_runs_are_compared_and_keys_do_as_they_say(tmp_path):
    app = loaded(write(tmp_path))
    async with app.run_test(size=(140, 40)) as pilot:
        # Without a selection the listed runs are compared.
        await press(pilot, "C")
        assert "compare 5 runs" in text(app)
        await press(pilot, "escape", "slash", Typed("run-3"), "enter")
        await press(pilot, "C")
        assert "▸gsm8k-run-3" in text(app)
        await press(pilot, "escape", "escape", "1")
        # Selected runs are, and keys do what they say.
        await press(pilot, "f2")
        await press(pilot, "j", "space", "j", "space", "C")
        check_shown(app, "compare 2 runs, each at its end", "▸A 1")
        await press(pilot, "right", "b")
        assert text(app).index("▸B 2") < text(app).index("A 1")
        await press(pilot, "x")
        assert "compare 2 runs, at step 12" in text(app)
        await press(pilot, "right", "enter")
        assert not isinstance(app.screen, CompareScreen)
        assert "verl-tui gsm8k-run-1 " in text(app)
        await press(pilot, "C")
        assert "▸B 2" in text(app), "the baseline is remembered"


async def test_of_many_runs_the_shown_one_and_those_next_to_it_are_compared(tmp_path):
    app = loaded(write(tmp_path, 30, 2))
    async with app.run_test(size=(140, 40)) as pilot:
        await press(pilot, *["right_square_bracket"] * 9, "C")
        assert (
            "compare 12 of 30 runs, each at its end · space in the list selects others"
            in text(app)
        )
        assert isinstance(app.screen, CompareScreen)
        shown = app.view_at(NOW).run
        assert [run.name for run in app.screen.runs[:2]] == [
            shown.name,
            names(app)[names(app).index(shown.name) - 6],
        ]
        await press(pilot, "right", "b", "right_square_bracket")
        assert shown.name not in app.screen.runs[0].name, (
            "what the user holds the others against stays it"
        )
        await press(pilot, *["right_square_bracket"] * 15)
        assert app.screen.runs[0] is app.view_at(NOW).run, "as long as it is among them"
