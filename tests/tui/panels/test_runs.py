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
    import pytest

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


async def test_one_row_each_where_there_is_room() -> None:
    runs = (
        make_run("grpo", columns=FIGURES),
        make_run("ppo", 480),
        make_run("old", 500, quiet=9000.0),
    )
    worse = (*WARNED.findings, *CRITICAL.findings)
    view = make_view(
        *runs, verdicts={"grpo": Verdict(worse), "ppo": WARNED, "old": Verdict()}
    )
    heading, first, second, third = (await shown(view, (150, 5))).split("\n")[:4]
    assert [word for word in heading[1:-1].split() if word.isalpha()] == [
        *(
            "runs",
            "state",
            "step",
            "done",
            "reward",
            "trend",
            "KL",
            "throughput",
            "ETA",
            "last",
            "findings",
        )
    ]
    assert first[1:].split()[:6] == [
        "1",
        "✖2",
        "grpo",
        "running",
        "120/500",
        "24%",
    ]
    assert first[1:].split()[6] == "0.865"
    assert first[1:].split()[8:15] == [
        "0.012",
        "4.5k",
        "3h",
        "10m",
        "now",
        "policy",
        "collapse",
    ]
    assert "kl high" in second
    for words, value in (
        ("reward", "0.865"),
        ("KL", "0.012"),
        ("throughput", "4.5k"),
        ("last", " now"),
    ):
        assert heading.index(words) + len(words) == first.index(value) + len(value), (
            "numbers stand below their name"
        )
    assert second[1:].split()[:2] == ["2", "▲1"]
    assert third[1:].split()[:4] == ["3", "○", "old", "finished"]
    assert "100%" in third
    assert "2h 30m" in third  # age
    assert first.index("120/500") == second.index("480/500") == third.index("500/500")


async def test_keys_and_mouse_pick_runs() -> None:
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


async def test_filter() -> None:
    app = Host(RunsPanel())
    async with app.run_test(size=(80, 8)) as pilot:
        assert isinstance(app.panel, RunsPanel)
        app.panel.show(three())
        app.panel.filter = "PO"
        await pilot.pause()
        assert "grpo" in app.text
        assert "ppo" in app.text
        assert "old" not in app.text
        assert "2 of 3" in app.subtitle_words
        app.panel.filter = "[/x]"
        await pilot.pause()
        assert "grpo" in app.text, "what names no run is meant for metrics"
        assert "of 3" not in app.subtitle_words
        app.panel.filter = ""
        await pilot.pause()
        assert "3 ○  old" in app.text


async def test_one_new_step_repaints_the_rows_of_its_run_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
