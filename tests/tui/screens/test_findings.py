"""From one finding to the next: charts, samples and words follow wherever the user is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from inside_textual import notices
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    settle,
    showing,
    text,
    write_run,
)

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.widgets.chart import Chart

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from verl_tui.monitor import Monitor
    from verl_tui.tui.app import VerlApp

SIZES = [
    ((140, 45), (40, 12)),
    pytest.param(((80, 24), (60, 14)), marks=pytest.mark.thorough),
]


def shown(app: VerlApp) -> set[str]:
    """Return the keys of the charts in sight."""
    return {chart.data.key for chart in dashboard(app).query(Chart) if chart.display}


def displayed(app: VerlApp) -> list[str]:
    return notices(app)


@pytest.mark.parametrize("sizes", SIZES)
async def test_every_finding_is_reached_in_every_layout(
    apart: Monitor, sizes: tuple[tuple[int, int], ...]
) -> None:
    app = showing(apart)
    async with app.run_test(size=sizes[0], notifications=True) as pilot:
        await settle(pilot)
        samples = app.screen.query_one(SamplesPanel)
        for size in sizes:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            for finding in app.view_at(NOW).verdict.findings:
                await press(pilot, "e")
                assert finding.key in shown(app)
                chart = next(
                    one
                    for one in dashboard(app).query(Chart)
                    if one.data.key == finding.key
                )
                assert chart.cursor == app.cursor == finding.since_step
                assert finding.since_step in {
                    mark.step for mark in chart.data.marks if mark.role == "breach"
                }
                if samples.display:
                    assert samples.shown is not None
                    assert samples.shown[0].step == finding.since_step
                assert len(displayed(app)) <= 1, "they do not heap up"
                assert finding.message[:12] in text(app) or displayed(app)[
                    0
                ].startswith(f"{finding.id}: "), "it is named"
                check_layout(app)
            await press(pilot, "f6")
            assert samples.shown is not None
            assert samples.shown[0].step == app.cursor
            await press(pilot, "escape", "escape", "0")
            app.clear_notifications()
            assert app.cursor is None


@pytest.mark.parametrize(
    "size", [(40, 12), pytest.param((140, 45), marks=pytest.mark.thorough)]
)
async def test_a_filter_gives_way_to_a_finding_beyond_it(
    collapse: Monitor, size: tuple[int, int]
) -> None:
    app = showing(collapse)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "slash", Typed("entropy"), "enter", "escape")
        await press(pilot, "slash", Typed("entropy"), "enter")
        assert "ppo/entropy" in shown(app)
        assert "rollout/reward_mean" not in shown(app)
        await press(pilot, "e")  # policy-collapse
        assert "rollout/reward_mean" in shown(app)
        assert app.screen.query_one(ChartsPanel).filter == ""
        # One that shows the metric stays.
        await pilot.resize_terminal(140, 45)
        await press(pilot, "0", "slash", Typed("reward"), "enter", "e")
        assert "rollout/reward_mean" in shown(app)
        assert app.screen.query_one(ChartsPanel).filter == "reward"


async def test_health_out_of_sight_knows_the_run_that_is_shown(tmp_path: Path) -> None:
    write_run(tmp_path, "one", 40, kl_div=0.3)
    write_run(tmp_path, "two", 40, kl_div=0.15)
    app = loaded(tmp_path / "one", tmp_path / "two")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await press(pilot, "z", "2", "e")
        (said,) = displayed(app)
        assert said.startswith("kl-high: ")
        await press(pilot, "1", "a")
        assert displayed(app) == ["acknowledged: circuit-breaker-kl"]
        await press(pilot, "f4", "z", "e")
        assert "rollout/kl_div" in shown(app), (
            "the charts were out of sight, and those of the other run"
        )


@pytest.fixture
def keyless(collapse: Monitor) -> Iterator[Monitor]:
    """The run that collapses, with findings that name no metric, or neither metric nor step."""
    before = collapse.verdicts["run_ppo_collapse"]
    found = (
        Finding("crash", Severity.CRITICAL, "it crashed", step=8400, since_step=5050),
        Finding("hang", Severity.CRITICAL, "no step at all"),
        Finding(
            "odd", Severity.WARNING, "who knows that metric", step=4000, key="no/such"
        ),
    )
    collapse.verdicts["run_ppo_collapse"] = Verdict(found)
    yield collapse
    collapse.verdicts["run_ppo_collapse"] = before


@pytest.mark.parametrize("sizes", SIZES)
async def test_findings_without_metric_or_step(
    keyless: Monitor,
    sizes: tuple[tuple[int, int], ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyless, "judge", lambda _now: False)
    app = showing(keyless)
    async with app.run_test(size=sizes[0]) as pilot:
        for size in sizes:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            page = shown(app)
            for cursor in (5050, 5050, 4000):
                await press(pilot, "e")
                assert app.cursor == cursor
                assert shown(app) == page
            check_layout(app)
            await press(pilot, "0")


async def test_the_chosen_finding_leads_the_badges(tmp_path: Path) -> None:
    app = loaded(write_run(tmp_path, "run", 40, kl_div=0.3, response_length_mean=300.0))
    async with app.run_test(size=(40, 12), notifications=True) as pilot:
        await press(pilot, "e", "e")
        assert lines(app)[-4].startswith("▲ response-short ")
        assert "response length" in lines(app)[-3]
        assert displayed(app) == []
        await press(pilot, "a")
        assert "acknowledged: " in lines(app)[-3]


async def test_words_are_cut_to_one_line_of_ascii(tmp_path: Path) -> None:
    app = loaded(write_run(tmp_path, "run", 40, kl_div=0.3), ascii_only=True)
    async with app.run_test(size=(60, 14), notifications=True) as pilot:
        await press(pilot, "z", "e")
        (said,) = displayed(app)
        assert len(said) <= 52
        assert said.endswith("~")
        assert text(app).isascii()
        assert sum(said[:40] in line for line in lines(app)) == 1


async def test_why_rules_were_not_judged_is_shown_wherever_the_focus_is(
    demo: Monitor,
) -> None:
    app = showing(demo)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "f2")
        assert "(v: why)" in text(app)
        await press(pilot, "v")
        assert "(v: why)" not in text(app)
        await press(pilot, "v")
        assert "(v: why)" in text(app)
        await press(pilot, "f5", "z", "v")
        assert displayed(app) == ["the health panel is out of sight: f4 shows it"]
