"""The list of runs: what it says at each size, how a run is picked, and that a quiet list stays
quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from panel_host import Host, count_paints
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.tui.panels.runs import RunsPanel

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View

WARNED = Verdict((Finding("kl-high", Severity.WARNING, "too high"),))
CRITICAL = Verdict((Finding("policy-collapse", Severity.CRITICAL, "fell"),))


FIGURES = {"actor/ppo_kl": [0.012] * 120, "perf/throughput": [4500.0] * 120}


def three() -> View:
    runs = (make_run("grpo"), make_run("ppo", 480), make_run("old", 500, quiet=9000.0))
    return make_view(
        *runs, verdicts={"grpo": CRITICAL, "ppo": WARNED, "old": Verdict()}
    )


async def shown(view: View, size: tuple[int, int], *, narrow: bool = False) -> str:
    app = Host(RunsPanel(), narrow=narrow)
    async with app.run_test(size=size) as pilot:
        app.panel.show(view)
        await pilot.pause()
        return app.text


LISTED = """
─ runs ─── state ────── step  done ─ reward  trend ──────── KL  throughput ──── ETA ─── last  findings
1 ✖2 grpo  running   120/500   24%    0.865  ▁▂▄▅▆▇▇▇    0.012        4.5k   3h 10m      now  policy collapse +1
2 ▲1 ppo   running   480/500   96%        1  ▁▅▇▇▇▇▇▇                           10m      now  kl high
3 ○  old   finished  500/500  100%        1  ▁▅▇▇▇▇▇▇                                 2h 30m
"""


async def test_one_row_each_where_there_is_room():
    runs = (
        make_run("grpo", columns=FIGURES),
        make_run("ppo", 480),
        make_run("old", 500, quiet=9000.0),
    )
    worse = Verdict((*WARNED.findings, *CRITICAL.findings))
    verdicts = {"grpo": worse, "ppo": WARNED, "old": Verdict()}
    rows = (await shown(make_view(*runs, verdicts=verdicts), (150, 5))).split("\n")
    assert [row[1:-1].rstrip(" ─") for row in rows[:4]] == LISTED.strip().split("\n")


async def test_keys_and_mouse_pick_runs():
    app = Host(RunsPanel())
    async with app.run_test(size=(36, 14)) as pilot:
        app.panel.show(three())
        await pilot.press("j")
        await pilot.press("down")
        await pilot.press("j")  # there is no further one
        await pilot.press("k")
        await pilot.press("G", "g")
        assert app.said == ["ppo", "old", "ppo", "old", "grpo"]
        await pilot.press("enter")
        assert app.said[-1] == "grpo"
        await pilot.click(RunsPanel, offset=(6, 2))
        assert app.said[-1] == "ppo"
        count = len(app.said)
        await pilot.click(RunsPanel, offset=(6, 11))  # below the last run
        assert len(app.said) == count


async def test_one_new_step_repaints_the_rows_of_its_run_only(monkeypatch):
    app = Host(RunsPanel())
    view = three()
    async with app.run_test(size=(36, 12)) as pilot:
        for _ in range(3):
            app.panel.show(view)
            await pilot.pause()
        counts = count_paints(monkeypatch)
        runs = {**view.monitor.runs, "ppo": make_run("ppo", 481)}
        view.monitor.runs = runs
        app.panel.show(view)
        await pilot.pause()
        assert counts["render"] == 1
