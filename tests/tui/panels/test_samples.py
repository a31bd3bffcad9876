"""The samples panel: which sample it shows, how it looks, and what hostile text does to it:
nothing.
"""

from __future__ import annotations

import pytest
from panel_host import Host
from run_views import make_view

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Batch, Sample, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.tui.panels.samples import SamplesPanel

BROWSER = SampleBrowser(lambda: None)
"""What the samples are looked at through: these lie in memory, nothing is read."""


@pytest.fixture(scope="module", autouse=True)
def no_thread_left():
    """End its thread: every wait for an app looks at what threads do."""
    yield
    BROWSER.stop()


STATUS = SourceStatus("/logs/rollouts/1.jsonl", "rollout dump", modified=900.0)


class SamplesHost(Host):
    """Nothing but the panel."""

    def __init__(self, view):
        super().__init__(SamplesPanel())
        self.view = view

    def on_mount(self):
        self.panel.show(self.view)

    @property
    def shown(self):
        """Step and index of the sample shown."""
        shown = self.query_one(SamplesPanel).browse.shown
        return (shown[0].step, shown[1]) if shown is not None else None


def sample(step, index, score=None, **more):
    more = {
        "prompt": f"prompt {step}-{index}",
        "response": f"response {step}-{index}",
        **more,
    }
    return Sample(step=step, score=float(index % 2) if score is None else score, **more)


def add(run, *samples):
    run.apply(Batch(run.name, STATUS, samples), 1000.0)


def steps_of_three(*steps):
    run = Run("grpo")
    add(run, *(sample(step, index) for step in steps for index in range(3)))
    return run


def view_of(run, **more):
    return make_view(*([run] if run else []), now=1000.0, browser=BROWSER, **more)


async def test_follows_the_newest_step_until_the_user_moves():
    run = steps_of_three(10)
    app = SamplesHost(view_of(run))
    async with app.run_test(size=(100, 14)) as pilot:
        await pilot.pause()
        assert app.shown == (10, 0)
        assert app.subtitle_words == "following · samples.open opens"
        add(run, sample(20, 0))
        app.panel.show(view_of(run))
        assert app.shown == (20, 0)
        await pilot.pause()
        assert "response 20-0" in app.text
        await pilot.press("n")
        assert app.shown == (10, 0)
        add(run, sample(30, 0))
        app.panel.show(view_of(run))
        assert app.shown == (10, 0)
        assert (
            app.subtitle_words
            == "step 10, 1 of 3 · samples.follow follows · samples.open opens"
        )
        await pilot.press("f")
        assert app.shown == (30, 0)
        await pilot.press("f")
        assert not app.panel.browse.chosen.follow


async def test_walks_through_samples_and_steps():
    app = SamplesHost(view_of(steps_of_three(10, 20, 30)))
    async with app.run_test(size=(100, 14)) as pilot:
        seen = []
        for key in "nnnnppNNNnPPPppp":
            await pilot.press(key)
            seen.append(app.shown)
        assert seen == [
            *((30, 1), (30, 2), (20, 0), (20, 1), (20, 0), (30, 2)),  # n p
            *((20, 2), (10, 2), (10, 2), (10, 2)),  # N, then n at the very end
            *((20, 2), (30, 2), (30, 2)),  # P
            *((30, 1), (30, 0), (30, 0)),
        ]


async def test_best_and_worst():
    run = Run("grpo")
    add(
        run,
        *(
            sample(1, i, score)
            for i, score in enumerate([0.5, 0.1, 0.9, float("nan"), 0.9, 0.1])
        ),
    )
    app = SamplesHost(view_of(run))
    async with app.run_test(size=(100, 14)) as pilot:
        seen = []
        for key in "bbbwww":
            await pilot.press(key)
            seen.append(app.shown)
        assert [index for _, index in seen if index is not None] == [2, 4, 2, 5, 1, 5]


@pytest.mark.parametrize("key", ["j", "k", "down", "pagedown", "pageup"])
async def test_a_folded_sample_unfolds_for_who_scrolls_on(key):
    run = Run("grpo")
    lines = "\n".join(f"line {n}" for n in range(60))
    add(run, sample(1, 0, prompt=lines, response=lines))
    add(run, sample(1, 1, prompt=lines, response=lines))
    app = SamplesHost(view_of(run))
    async with app.run_test(size=(100, 14)) as pilot:
        await pilot.pause()
        assert "samples.unfold unfolds" in app.text
        await pilot.press(key)
        await pilot.pause()
        assert "unfolds" not in app.text
        assert "line 0" in app.text, "from the top"
        await pilot.press("j", "j")
        await pilot.pause()
        assert "line 0 " not in app.text
        assert "line 2" in app.text
        add(run, sample(2, 0))
        app.panel.show(view_of(run))
        assert app.shown == (1, 0), (
            "a newer sample does not replace the one that is read"
        )
        await pilot.press("u")
        await pilot.pause()
        assert "samples.unfold unfolds" in app.text


async def test_says_why_there_are_no_samples():
    app = SamplesHost(view_of(None))
    async with app.run_test(size=(100, 14)) as pilot:
        await pilot.pause()
        assert "No run yet." in app.text
        run = Run("grpo")
        app.panel.show(view_of(run, loading=True))
        await pilot.pause()
        assert "No samples read yet" in app.text
        app.panel.show(view_of(run))
        await pilot.pause()
        assert "trainer.rollout_data_dir" in app.text
        assert "log_completions" in app.text, "nothing says yet whose log it is"
        run.settings["trainer.rollout_data_dir"] = "/data/[red]dumps"
        app.panel.show(view_of(run))
        await pilot.pause()
        assert "/data/[red]dumps" in app.text
        add(run, sample(1, 0))
        app.panel.show(view_of(run))
        await pilot.pause()
        assert "response 1-0" in app.text
