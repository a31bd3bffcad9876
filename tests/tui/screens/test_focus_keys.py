"""Keys mean what has the focus: the last row of the screen, enter, the filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from watching import (
    NOW,
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
    write_run,
)

from verl_tui.config import Config
from verl_tui.tui.keys.tasks import TASKS
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.screens.catalog import SCREENS
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from textual.pilot import Pilot

    from verl_tui.monitor import Monitor
    from verl_tui.tui.app import VerlApp

WIDE = (140, 45)

ENTROPIES = {"actor/entropy", "samples/ngram_entropy", "val_samples/ngram_entropy"}


def zoomed(app: VerlApp) -> str:
    """Return the metric of the chart over the full screen."""
    assert isinstance(app.screen, ZoomScreen)
    return app.screen.query_one(ZoomedChart).data.key


def focused_panel(app: VerlApp) -> str | None:
    panel = dashboard(app).focused_panel
    return panel.id if panel is not None else None


# -- the last row ----------------------------------------------------------------------------------


BEGINNINGS = {
    "f2": "space Select s Sort C Compare o Samples m Metrics l Log",
    "f3": "← → Read enter Full screen + - Zoom j k Chart o Samples m Metrics",
    "f4": "space Unfold v Other rules a Acknowledge o Samples m Metrics",
    "f5": "enter Full screen",
    "f6": "p n Sample N P Step b w Best, worst u Unfold f Follow o Samples",
}
"""The key of a panel -> what the last row begins with while it has the focus."""


async def test_the_last_row_begins_with_the_keys_of_the_focused_panel(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot)
        usual = lines(app)[-1]
        assert usual.startswith(
            "tab Panel [ ] Run e Finding / Filter z Zoom o Samples m Metrics l Log"
        )
        for key, begins in BEGINNINGS.items():
            await press(pilot, key)
            assert lines(app)[-1].startswith(begins), key
            check_layout(app)
            await press(pilot, "escape")
            assert lines(app)[-1] == usual, key


async def test_the_last_row_names_each_screen_once_and_always_the_help(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=(170, 45)) as pilot:
        for key in ("f2", "f3", "f4", "f5", "f6"):
            await press(pilot, key)
            row = lines(app)[-1]
            for one in SCREENS.values():
                assert not one.short or row.count(f" {one.short}") == 1, row
        # The key that names all others has room at any width.
        for key in ("f6", "f2", "f3"):
            await press(pilot, key)
            for width in (60, 80, 100, 120):
                await pilot.resize_terminal(width, 30)
                await settle(pilot)
                assert "? Help" in lines(app)[-1], (key, width)
                check_layout(app)


async def test_the_last_row_names_keys_as_the_user_has_set_them(
    demo: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        demo, "config", Config(keys={"runs.select": "f9", "compare": "f10"})
    )
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot, "f2")
        assert lines(app)[-1].startswith("f9 Select s Sort f10 Compare")


# -- enter -----------------------------------------------------------------------------------------


async def test_enter_opens_what_has_the_focus(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot, "f5", "enter")
        assert app.screen is dashboard(app)
        assert in_sight(app) == {"gpus"}
        await press(pilot, "enter")
        assert len(in_sight(app)) == 5
        await press(pilot, "f3", "j", "enter")
        assert zoomed(app) == "actor/ppo_kl"


async def test_enter_after_a_finding_opens_its_chart(apart: Monitor) -> None:
    app = showing(apart)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot)
        findings = app.view_at(NOW).verdict.findings
        first = findings[0].key
        other = next(at for at, finding in enumerate(findings) if finding.key != first)
        await press(pilot, *["e"] * (other + 1), "enter")
        assert zoomed(app) == findings[other].key
        await press(pilot, "escape", "escape", "0", "enter")
        assert (
            zoomed(app) == dashboard(app).query_one(ChartsPanel).charts[0].data.key
        ), "nothing is looked at any more"


async def test_the_focus_among_charts_follows_a_finding(collapse: Monitor) -> None:
    app = showing(collapse)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot, "f3", "j", "e")
        (focused,) = [
            chart
            for chart in dashboard(app).query_one(ChartsPanel).charts
            if chart.has_focus
        ]
        assert focused.data.key == app.view_at(NOW).verdict.findings[0].key
        # With the focus on findings enter unfolds the chosen one.
        await press(pilot, "f4", "e")
        assert "▾" not in text(app)
        await press(pilot, "enter")
        assert app.screen is dashboard(app)
        assert "▾" in text(app)


# -- the filter ------------------------------------------------------------------------------------


def charted(app: VerlApp) -> set[str]:
    """Return the metrics that are drawn."""
    return {
        chart.data.key
        for chart in dashboard(app).query_one(ChartsPanel).charts
        if chart.display
    }


def listed(app: VerlApp) -> list[str]:
    """Return the runs that are listed."""
    return [run.name for run in app.view_at(NOW).listed]


async def test_the_run_list_filters_runs_alone_and_keeps_the_focus(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        await press(pilot)
        every, all_runs = charted(app), listed(app)
        await press(pilot, "f2", "slash")
        assert lines(app)[-1].strip().startswith("filter runs:")
        assert lines(app)[-1].strip().endswith("esc leaves")
        await press(pilot, Typed("entropy"))
        assert "nothing matches · enter keeps it · esc clears it" in lines(app)[-1]
        await press(pilot, "enter")
        assert charted(app) == every
        await press(pilot, "slash", *["backspace"] * 7, Typed("coll"))
        assert "1 of 3 runs · enter keeps it" in lines(app)[-1]
        await press(pilot, "enter")
        assert "filter: 1 of 3" in text(app), "in the frame of the runs"
        assert (charted(app), listed(app)) == (every, ["run_ppo_collapse"])
        assert focused_panel(app) == "runs"
        await press(pilot, "f3", "slash", Typed("entropy"), "enter")
        assert charted(app) == ENTROPIES
        assert "filter “entropy”: 3 of " in text(app), "in the frame of the charts"
        assert listed(app) == ["run_ppo_collapse"], "each has a filter of its own"
        assert focused_panel(app) == "charts"
        await press(pilot, "escape")
        assert (charted(app), listed(app)) == (every, all_runs)
        # Escape takes back what was typed for one list alone.
        await press(
            pilot,
            "f3",
            "slash",
            Typed("entropy"),
            "enter",
            "f2",
            "slash",
            Typed("coll"),
            "escape",
        )
        assert len(listed(app)) == 3
        assert charted(app) == ENTROPIES
        assert focused_panel(app) == "runs"
        # Without the focus a word filters what it is meant for.
        await press(pilot, "escape", "escape")
        assert focused_panel(app) is None
        assert (charted(app), listed(app)) == (every, all_runs)
        await press(pilot, "slash", Typed("coll"), "enter")
        assert (charted(app), listed(app)) == (every, ["run_ppo_collapse"])
        assert "no metric matches “coll”" in text(app), "in the frame of the charts"
        await press(pilot, "escape", "escape", "slash", Typed("entropy"), "enter")
        assert (charted(app), listed(app)) == (ENTROPIES, all_runs)
        await press(pilot, "escape", "escape", "slash", Typed("grpo"), "enter")
        assert (charted(app), listed(app)) == (every, ["run_grpo_gsm8k"])


# -- a chart over the full screen ------------------------------------------------------------------


async def test_a_zoomed_chart_goes_from_run_to_run_and_from_metric_to_metric(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=WIDE) as pilot:
        # From run to run it keeps to what is meant.
        await press(pilot, "enter")
        assert zoomed(app) == "critic/score/mean"
        assert lines(app)[-1].startswith(
            "esc Back [ ] Run j k Metric ← → Read + - Zoom"
        )
        await press(pilot, "right_square_bracket")
        assert zoomed(app) == "rollout/reward_mean", "the reward, whatever its key"
        await press(pilot, "left_square_bracket")
        assert zoomed(app) == "critic/score/mean"
        await press(pilot, "right_square_bracket", "escape")
        assert "run_ppo_collapse" in lines(app)[0]
        # From metric to metric it keeps to the order of the dashboard.
        await press(pilot, "1")
        wanted = [
            chart.data.key for chart in dashboard(app).query_one(ChartsPanel).charts
        ][:3]
        await press(pilot, "enter", "k")
        assert zoomed(app) == wanted[0], "there is none before"
        found = []
        for key in ("j", "down", "up"):
            await press(pilot, key)
            found.append(zoomed(app))
        assert found == [wanted[1], wanted[2], wanted[1]]
        await press(pilot, "escape", "enter")
        assert zoomed(app) == wanted[1], "the dashboard is where one left"
        # In all metrics it goes through those listed.
        await press(pilot, "escape", "m", "slash", Typed("actor"), "enter", "enter")
        first = zoomed(app)
        await press(pilot, "j")
        assert zoomed(app) != first
        assert "actor" in zoomed(app)
        await press(pilot, "k")
        assert zoomed(app) == first


async def test_a_run_without_the_metric_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, "one", own_metric=1.0)
    write_run(tmp_path, "two")
    app = loaded(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await press(
            pilot,
            "f3",
            "slash",
            Typed("own_metric"),
            "enter",
            "enter",
            "right_square_bracket",
        )
        assert "two has no rollout/own_metric" in text(app)
        check_layout(app)
        await press(pilot, "left_square_bracket")
        assert "has no" not in text(app)
        assert zoomed(app) == "rollout/own_metric"


# -- the help --------------------------------------------------------------------------------------


async def help_rows(pilot: Pilot[Any]) -> list[str]:
    """Return what the help says, and leave it."""
    await press(pilot, "question_mark")
    said = [strip.text.rstrip() for strip in pilot.app.screen.query_one(Rows).strips]
    await press(pilot, "escape")
    return said


async def shown(pilot: Pilot[Any]) -> dict[str, str]:
    """Return what the help says in one column, by where it holds."""
    found: dict[str, str] = {}
    for part in "\n".join(await help_rows(pilot)).split("\n\n"):
        place = part.split("\n", 1)[0].rpartition(" · ")[2]
        found[place] = found.get(place, "") + part + "\n"
    return found


async def test_the_help_sorts_keys_by_task(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 45)) as pilot:
        rows = await help_rows(pilot)
        titles = [row for row in rows if " · " in row and not row.startswith(" ")]
        tasks = list(dict.fromkeys(title.partition(" · ")[0] for title in titles))
        assert tasks == [task.description for task in TASKS]
        of = {
            title: rows[at : at + 30]
            for at, title in enumerate(rows)
            if title in titles
        }
        for title, words in (
            ("see whether it learns · everywhere", "All metrics"),
            ("find out why it broke · everywhere", "Next finding"),
            ("read samples · everywhere", "Samples of this step"),
            ("compare runs · everywhere", "Compare runs side by side"),
            ("take something away · everywhere", "Screenshot"),
            ("move and look · everywhere", "Next panel"),
        ):
            below = of[title][: of[title].index("")]
            assert any(words in row for row in below), title
        # Keys are named as they are typed.
        everywhere = (await shown(pilot))["everywhere"].split("\n")
        for begins in ("  + = ", "  - _ ", "  / ", "  q ", "  [ ", "  ctrl+p "):
            assert any(line.startswith(begins) for line in everywhere), begins


async def test_the_help_has_what_holds_where_one_is(demo: Monitor) -> None:
    app = showing(demo)
    async with app.run_test(size=(120, 45)) as pilot:
        # Over a zoomed chart.
        await press(pilot, "enter")
        said = await shown(pilot)
        first, signs, everywhere = list(said)[:3]
        assert (first, signs, everywhere) == (
            "a chart in full screen",
            "signs in charts",
            "everywhere",
        )
        for words in (
            "Move the cursor left",
            "Next metric",
            "Same metric, next run",
            "esc enter z q",
        ):
            assert words in said[first]
        for words in ("Quit", "Zoom panel", "Filter"):
            assert words not in said[everywhere]
        assert "Pause" in said[everywhere]
        assert any("Zoom panel" in part for part in said.values()), (
            "it has its place further down"
        )
        # Over another screen it leaves out what does not hold.
        await press(pilot, "escape", "t")
        said = await shown(pilot)
        assert "Screenshot" in said["everywhere"]
        assert "Redraw" in said["everywhere"]
        assert "Pause" not in said["everywhere"]
        # A panel with the focus overrides general keys.
        await press(pilot, "escape", "f2")
        said = await shown(pilot)
        assert "Smoother" not in said["everywhere"]
        assert "Less smooth" in said["everywhere"]
        assert "✓ finished" in said["runs, with the focus"]


async def test_enter_has_badges_fill_the_screen_where_there_is_no_list_to_open(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=(80, 16)) as pilot:
        await press(pilot, "right_square_bracket")
        panel = dashboard(app).query_one(HealthPanel)
        for size in ((80, 16), (40, 12)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert 0 < panel.content_size.height <= 4, size
            panel.query_one(Rows).focus()
            await press(pilot, "enter")
            assert dashboard(app).zoomed is panel, size
            before = text(app)
            await press(pilot, "enter")
            assert dashboard(app).zoomed is panel, "now it unfolds a finding"
            assert text(app) != before, size
            await press(pilot, "enter", "escape", "escape")
            assert dashboard(app).zoomed is None, size
