"""The charts panel: how many charts fit, pages, scale, smoothing, and what a repaint costs."""

from __future__ import annotations

import random
from dataclasses import replace

from charted_runs import rich_run, view_of
from panel_host import Host
from run_views import NOW, make_run

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.tui.panels.charts import ChartsPanel


async def test_each_finding_has_a_mark_at_its_step_on_every_axis():
    run = rich_run()
    found = tuple(
        Finding(f"rule-{since}", Severity.WARNING, "high", 60, since, key=key)
        for since, key in (
            (20, "actor/ppo_kl"),
            (45, "actor/ppo_kl"),
            (45, "actor/ppo_kl"),
            (30, "actor/entropy"),
        )
    )
    view = view_of(
        run,
        verdicts={
            run.name: Verdict(
                (*found, Finding("no-key", Severity.WARNING, "high", 60, 50))
            )
        },
    )
    view = replace(view, cursor=45)
    kl = next(one for one in plan_charts(run, ()) if one.key == "actor/ppo_kl")
    stepped = chart_data(kl, view, ChartLook())
    assert [(mark.step, mark.role) for mark in stepped.marks] == [
        (20, "warning"),
        (45, "warning"),
    ]
    timed = chart_data(kl, view, ChartLook(axis="time"))
    times = [int(NOW - (60 - step) * 30.0) for step in (20, 45)]
    assert [mark.step for mark in timed.marks] == times
    assert (stepped.cursor, timed.cursor) == (45, times[1])


async def test_what_is_constant_has_a_row_until_it_varies():
    app, steps = Host(ChartsPanel()), 20
    columns = {
        "actor/entropy": [0.1 * (n % 5) for n in range(steps)],
        "actor/lr": [1e-6] * steps,
    }
    run = make_run(steps=steps, columns=columns)
    async with app.run_test(size=(80, 24)) as pilot:
        app.panel.show(view_of(run))
        await pilot.pause()
        assert "constant since step 1" in app.text.splitlines()[-2]
        reward, entropy, row = (chart.region for chart in app.panel.charts)
        assert reward.height == entropy.height == 21
        assert reward.width > entropy.width
        assert row.height == 1
        await pilot.press("tab", "j", "j")
        plan = app.panel.focused_plan()
        assert plan.key == "actor/lr"
        status = SourceStatus(
            "/logs/grpo", "verl", modified=NOW, size=200, bytes_read=200
        )
        rows = MetricRows(("actor/lr",), (steps + 1,), ((2e-6,),), (steps + 1,))
        run.apply(Batch("grpo", status, (rows,)), NOW)
        app.panel.show(view_of(run))
        await pilot.pause()
        assert "constant" not in app.text
        assert all(chart.size.height > 6 for chart in app.panel.charts)
        assert app.panel.reveal("actor/lr")


async def test_the_parts_of_a_reward_stand_below_it_and_devices_in_one_chart():
    app, steps = Host(ChartsPanel()), 33
    columns = {
        "actor/ppo_kl": [0.01 * (n % 3) for n in range(steps)],
        "rewards/accuracy_reward/mean": [0.0] * steps,
        "rewards/format_reward/mean": [min(1.0, n / 10) for n in range(steps)],
        "system/gpu.0.gpu": [97.0 + n % 2 for n in range(steps)],
        "system/gpu.1.gpu": [float(n % 2) for n in range(steps)],
        "system/disk.vda.in": [float(n) for n in range(steps)],
    }
    async with app.run_test(size=(140, 30)) as pilot:
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await pilot.pause()
        named = (row.strip("│").split() for row in app.text.splitlines())
        parts = {words[0]: words[1] for words in named if words[1:]}
        assert set(parts["accuracy"]) == {"▁"}
        assert parts["format"].endswith("▇▇▇▇▇")
        reward, *others = (chart.size for chart in app.panel.charts)
        assert all(reward.area > other.area for other in others)
        rows = app.text.splitlines()
        (heading,) = (at for at, row in enumerate(rows) if "── machine ──" in row)
        utilisation = next(row for row in rows if "GPU 0–1 utilisation" in row)
        assert rows.index(utilisation) > heading
        assert "0%–97%" in utilisation
        assert app.panel.reveal("system/gpu.1.gpu")
        await pilot.press("tab", *"j" * 20)
        plan = app.panel.focused_plan()
        assert plan.key == "actor/ppo_kl", "the end of the last column"


async def test_it_is_said_once_that_noise_smooths_most_charts():
    app, steps, chance = Host(ChartsPanel()), 400, random.Random(7)
    noisy = ("critic/score/mean", "actor/ppo_kl", "actor/pg_loss")
    columns = {key: [chance.random() for _ in range(steps)] for key in noisy}
    level = [float(n > 200) for n in range(steps)]
    async with app.run_test(size=(140, 30)) as pilot:
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await pilot.pause()
        assert app.text.count("smoothed (auto)") == 1
        assert "~0." not in app.text
        assert "raw" not in app.text
        columns["actor/entropy"] = level
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await pilot.pause()
        assert app.text.count("raw") == 1
        columns = dict.fromkeys(noisy, level)
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await pilot.pause()
        assert "smoothed (auto)" not in app.text
        assert "raw" not in app.text
