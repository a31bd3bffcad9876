"""The list of runs: what it says at each size, how a run is picked, and that a quiet list stays
quiet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from panel_host import SIZES, Host, count_paints, show_at_sizes
from rich.cells import cell_len
from run_views import HOSTILE, NOW, make_run, make_view
from watching import check_layout, dashboard, loaded, press, settle, text, write_run

from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict
from verl_tui.rendering.run_list import table_rows
from verl_tui.rendering.run_list.entry_rows import RunEntry
from verl_tui.rendering.run_list.table_rows import RunFigures, run_table
from verl_tui.runs.views.state import State
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.terminal import themes
from verl_tui.tui.widgets.entries import Entries

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_any_size_and_any_name(ascii_only: bool) -> None:
    view = make_view(
        *(make_run(name or " ", 30 + i) for i, name in enumerate(HOSTILE)),
        ascii_only=ascii_only,
    )
    sizes = SIZES[:: -1 if ascii_only else 1]
    await show_at_sizes(RunsPanel(), sizes, view, replace(view, loading=True))


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
        ),
    ]
    assert first[1:].split()[:7] == [
        "1",
        "✖2",
        "grpo",
        "running",
        "120/500",
        "█▉",
        "24%",
    ]
    assert first[1:].split()[7] == "0.865"
    assert first[1:].split()[9:15] == [
        "0.012",
        "4.5k",
        "3h",
        "10m",
        "now",
        "policy-collapse",
    ]
    assert "kl-high" in second
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
    assert third[1:].split()[:4] == ["3", "●", "old", "finished"]
    assert "100%" in third
    assert "2h 30m" in third  # age
    assert first.index("120/500") == second.index("480/500") == third.index("500/500")


@pytest.mark.parametrize("width", range(48, 160, 7))
def test_the_table_has_the_columns_that_fit_and_the_names_room(width: int) -> None:
    names = ["x" * 30, "数学强化学习" * 4]
    laid = run_table(names, width, indent=5, steps=9, ascii_only=False)
    filled = RunFigures(("nan", "odd"), finding="kl-high", more=3)
    entry = RunEntry(
        names[1], "ok", "3", State.FINISHED, "1200/1500", 0.8, "", "1703d 10h", None
    )
    for row in ([(laid.heading, "")], laid.row(entry, filled)):
        assert sum(cell_len(part) for part, _ in row) <= width
    words = laid.heading.split()
    ranked = [
        "step",
        "reward",
        "KL",
        "last",
        "throughput",
        "findings",
        "ETA",
        "done",
        "trend",
    ]
    assert "nan" in "".join(part for part, _ in laid.row(entry, filled))
    assert [word for word in ranked if word in words][:3] == ranked[:3] or width < 60


async def test_columns_that_no_run_has_a_word_on_are_left_out() -> None:
    text = await shown(
        make_view(make_run(total=None), make_run("other", total=None)), (150, 12)
    )
    assert "reward" in text
    for heading in ("KL", "throughput", "ETA", "done"):
        assert heading not in text


async def test_of_a_table_only_rows_that_have_changed_are_written_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []
    head = table_rows.head_of
    monkeypatch.setattr(
        table_rows,
        "head_of",
        lambda entry, *a, **m: written.append(entry.name) or head(entry, *a, **m),
    )
    app = Host(RunsPanel())
    runs = [make_run(f"run-{n}", 20) for n in range(200)]
    view = make_view(*runs)
    async with app.run_test(size=(120, 20)) as pilot:
        app.panel.show(view)
        await pilot.pause()
        assert len(set(written)) <= 20
        written.clear()
        app.panel.show(replace(view, run=runs[1]))
        assert sorted(written) == ["run-0", "run-1"]


async def test_the_panel_over_the_full_screen_is_a_table(tmp_path: Path) -> None:
    for n in range(30):
        write_run(tmp_path, f"run-{n:02}", 3)
    app = loaded(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        for size, there in (
            ((80, 24), True),
            ((60, 20), True),
            ((40, 12), False),
            ((140, 45), True),
        ):
            await pilot.resize_terminal(*size)
            await press(pilot, "f2")
            if not dashboard(app).zoomed:
                await press(pilot, "z")
            await settle(pilot)
            check_layout(app)
            seen = text(app)
            assert there is ("reward" in seen and "KL" in seen), size
            assert "run-00" in seen
            await press(pilot, "G")
            assert "run-29" in text(app)
            assert there is ("reward" in text(app)), "the heading stays"
            await press(pilot, "g")


async def test_two_rows_each_in_a_column() -> None:
    lines = (await shown(three(), (36, 10))).split("\n")
    assert "1 ✖1 grpo" in lines[1]
    assert "running · now" in lines[1]
    assert "120/500" in lines[2]
    assert "3h 10m" in lines[2]
    assert "2 ▲1 ppo" in lines[3]


async def test_three_rows_each_where_there_is_room() -> None:
    lines = (await shown(three(), (36, 12))).split("\n")
    assert "1 ✖1 grpo" in lines[1]
    assert "running · now" in lines[2]
    assert "120/500" in lines[3]
    assert "3h 10m" in lines[3]
    assert "2 ▲1 ppo" in lines[4]


async def test_one_short_row_each_on_a_narrow_screen() -> None:
    lines = (await shown(three(), (49, 8), narrow=True)).split("\n")
    assert "1 ✖1 grpo  120/500   24%   ETA 3h 10m  running" in lines[1]
    assert "3 ●  old   500/500  100%               finished" in lines[3]


async def test_ascii_differs_by_shape_too() -> None:
    text = await shown(replace(three(), ascii_only=True), (60, 12))
    inner = "".join(line[1:-1] for line in text.split("\n")[1:-1])
    assert inner.isascii()
    for badge in ("1 X1", "2 !1", "3 o"):
        assert badge in text


async def test_a_long_name_keeps_both_ends() -> None:
    text = await shown(
        make_view(make_run("gsm8k-grpo-" + "very-" * 20 + "lr1e-6")), (36, 6)
    )
    assert "gsm8k-g" in text
    assert "lr1e-6" in text
    assert "…" in text


@pytest.mark.parametrize(
    ("verdict", "badge"),
    [
        (None, "○"),
        (Verdict(), "●"),
        (WARNED, "▲1"),
        (CRITICAL, "✖1"),
        (
            Verdict(
                (),
                tuple(
                    NotJudged(rule, "why")
                    for rule in ("kl-high", "kl-low", "reward-low")
                ),
            ),
            "○",
        ),
    ],
)
async def test_badge(verdict: Verdict | None, badge: str) -> None:
    verdicts = {} if verdict is None else {"grpo": verdict}
    assert f"1 {badge:2} grpo" in await shown(
        make_view(make_run(), verdicts=verdicts), (80, 5)
    )


async def test_what_the_user_knows_of_is_not_counted() -> None:
    worse = (
        *CRITICAL.findings,
        *WARNED.findings,
        Finding("plateau", Severity.INFO, "no progress"),
    )
    view = make_view(
        make_run(),
        make_run("other"),
        verdicts={"grpo": Verdict(worse), "other": Verdict()},
    )
    assert "1 ✖2 grpo" in await shown(view, (80, 5)), "what only informs is no trouble"
    view.acknowledgements.toggle("grpo", CRITICAL.findings[0])
    text = await shown(view, (80, 5))
    assert "1 ▲1 grpo" in text
    assert "2 ●  other" in text, "names stand in one column"
    view.acknowledgements.toggle("grpo", WARNED.findings[0])
    assert "1 ●  grpo" in await shown(view, (80, 5))


async def test_a_stalled_run_has_no_end() -> None:
    text = await shown(make_view(make_run(quiet=700.0)), (100, 5))
    assert "stalled" in text
    assert "eta" not in text


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
        await pilot.click(RunsPanel, offset=(6, 5))  # second row of the second run
        assert app.said[-1] == "ppo"
        count = len(app.said)
        await pilot.click(RunsPanel, offset=(6, 11))  # below the last run
        assert len(app.said) == count


async def test_what_the_user_chose_stays_until_another_run_is_shown() -> None:
    app = Host(RunsPanel())
    view = three()
    async with app.run_test(size=(36, 12)) as pilot:
        app.panel.show(view)
        await pilot.press("j")
        app.panel.show(view)  # the app has not heard yet
        await pilot.press("j")
        assert app.said == ["ppo", "old"]
        app.panel.show(replace(view, run=view.monitor.runs["grpo"]))
        app.panel.show(replace(view, run=view.monitor.runs["ppo"]))
        await pilot.press("j")
        assert app.said[-1] == "old"


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
        assert "3 ●  old" in app.text


async def test_the_number_is_the_place_in_the_list() -> None:
    app = Host(RunsPanel())
    async with app.run_test(size=(80, 8)) as pilot:
        assert isinstance(app.panel, RunsPanel)
        app.panel.show(three())
        app.panel.filter = "old"
        await pilot.pause()
        assert "1 ●  old" in app.text


async def test_loading_and_nothing() -> None:
    assert "reading 45%" in await shown(replace(three(), loading=True), (36, 12))
    text = await shown(
        make_view(waiting=("logs: no log yet",), problems=("x: no such file",)), (40, 8)
    )
    assert "no run yet" in text
    assert "logs: no log yet" in text
    assert "▲ x: no such file" in text


@pytest.mark.parametrize("size", [(120, 20), (36, 12), (40, 6)])
async def test_nothing_new_repaints_nothing(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Host(RunsPanel())
    view = three()
    async with app.run_test(size=size) as pilot:
        for _ in range(3):
            app.panel.show(view)
            await pilot.pause()
        counts = count_paints(monkeypatch)
        app.panel.show(replace(view, now=NOW + 5))  # still `now`
        await pilot.pause()
        assert not counts


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
        assert 1 <= counts["render"] <= 2


async def test_many_runs_scroll() -> None:
    app = Host(RunsPanel())
    runs = [make_run(f"run-{i}", 20) for i in range(40)]
    view = make_view(*runs)
    async with app.run_test(size=(36, 10)) as pilot:
        app.panel.show(replace(view, run=runs[35]))
        await pilot.pause()
        assert "run-35" in app.text
        await pilot.press("G")
        await pilot.pause()
        assert "run-39" in app.text
        await pilot.press("g")
        await pilot.pause()
        assert "run-0" in app.text
        await pilot.press("pagedown")
        await pilot.pause()
        assert "run-0 " not in app.text


async def test_another_theme_changes_the_colours_alone() -> None:
    app = Host(RunsPanel())
    async with app.run_test(size=(60, 8)) as pilot:
        app.panel.show(three())
        await pilot.pause()
        before, text = app.export_screenshot(), app.text
        app.theme = "textual-light"
        await pilot.pause()
        await pilot.pause()
        assert app.text == text
        assert app.export_screenshot() != before


@pytest.mark.parametrize(
    "theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light"]
)
async def test_the_chosen_run_can_be_read_in_every_theme(theme: str) -> None:
    app = Host(RunsPanel())
    async with app.run_test(size=(60, 8)) as pilot:
        app.theme = theme
        app.panel.show(three())
        await pilot.pause()
        await pilot.pause()
        chosen, other = (app.panel.query_one(Entries).render_line(y) for y in (0, 2))
        look = [
            next(segment.style for segment in strip if "po" in segment.text)
            for strip in (chosen, other)
        ]
        assert look[0] != look[1]
        for style in look:
            assert style is not None
            plain = style.color is not None and style.color.is_default
            assert style.color != style.bgcolor or plain
            assert not (
                plain and style.bgcolor is not None and not style.bgcolor.is_default
            )


async def test_bars_show_how_far_runs_are_in_sixteen_colours_too() -> None:
    app = Host(RunsPanel())
    app.register_theme(themes.PLAIN)
    async with app.run_test(size=(140, 8)) as pilot:
        app.theme = themes.PLAIN.name
        app.panel.show(three())
        await pilot.pause()
        await pilot.press("tab")
        entries = app.panel.query_one(Entries)
        entries.focus()
        await pilot.pause()
        rows = [entries.render_line(y) for y in range(2)]
        (names, chosen), (_, other) = (
            [
                next(segment.style for segment in strip if sign in segment.text)
                for sign in ("po", "█")
            ]
            for strip in rows
        )
        assert names.reverse
        assert not chosen.reverse, "it would show what is missing"
        assert other.bgcolor.number == 8, "white is the part that is done"


@pytest.mark.parametrize("width", range(1, 8))
async def test_a_list_of_one_run_may_be_as_narrow_as_can_be(width: int) -> None:
    assert await shown(make_view(make_run("grpo")), (width, 6))
