"""The verdict on the shown run: its row at any width, its colour, what says the same elsewhere, and
the way through the findings of all runs.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from run_views import NOW, logged, make_run, make_view
from scenarios.failures import FAILURES, planted
from scenarios.healthy import HEALTHY
from scenarios.worlds import FORMS, World, write
from watching import (
    check_shown,
    dashboard,
    lines,
    loaded,
    press,
    quiet,
    records,
    sample,
    showing,
    write_run,
)

from verl_tui.config import Config
from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict, coverage_of
from verl_tui.monitor import load
from verl_tui.records import Event, EventKind
from verl_tui.rendering.run_list import lay_out
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.status_line import one_row
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.verdict_row import headline, tally, verdict_rows
from verl_tui.tui.panels.health import HealthPanel

COLLAPSE = Finding(
    "policy-collapse",
    Severity.CRITICAL,
    "the policy collapsed: reward cliff at step 60, from 0.6 to 0.1; KL is 3 times its limit",
    120,
    60,
    advice="Stop the run and go back to the last good checkpoint. Then a lower learning rate.",
    cause="policy collapse",
)
KL = Finding("kl-high", Severity.WARNING, "KL is high: mean 0.3", 120, 80, key="kl")
PLATEAU = Finding("plateau", Severity.INFO, "no trend", 120, 20, cause="plateau")
EVERY = (
    "reward-slide",
    "reward-cliff",
    "kl-high",
    "entropy-collapse",
    "response-short",
)
"""Rules of which each quantity has one."""
COLUMNS = {
    "actor/ppo_kl": [0.01] * 120,
    "actor/entropy": [0.5] * 120,
    "response_length/mean": [200.0] * 120,
}
NO_ENTROPY = {key: values for key, values in COLUMNS.items() if key != "actor/entropy"}


def saved(run):
    """Return the run with a checkpoint of step 50."""
    event = Event(EventKind.CHECKPOINT, "/out/global_step_50", 50, step=50)
    return logged(run, event, modified=None)


def seen(*found, run=None, unjudged=()):
    run = run or saved(make_run(columns=COLUMNS))
    reasons = tuple(NotJudged(id, "the log has none") for id in unjudged)
    return make_view(run, verdicts={run.name: Verdict(found, reasons)}, rules=EVERY)


def crashed():
    error = Event(EventKind.FATAL, "RuntimeError: no", line=3)
    return logged(make_run(steps=0), error, size=9, bytes_read=9, modified=None)


CASES = (
    (
        seen(COLLAPSE, KL),
        "critical",
        (
            "✖ policy collapse since step 60: reward cliff at step 60, from 0.6 to 0.1 → stop the run"
            " and resume from global_step_50",
            "✖ policy collapse since 60 → stop the run and resume from global_step_50",
            "✖ policy collapse since 60 → stop the run and r",
            "✖ policy collapse since 60",
        ),
    ),
    (seen(KL), "warning", ("▲ kl high since step 80: mean 0.3", *["▲ kl high since 80"] * 3)),
    (
        seen(),
        "good",
        (
            "● healthy at step 120: mean reward rose from 0.276 to 0.809, still rising, 5 rules found nothing",
            "● healthy at step 120: mean reward rose from 0.276 to 0.809, still rising",
            "● healthy at step 120: reward rising",
            "● healthy at step 120",
        ),
    ),
    (
        seen(PLATEAU),
        "good",
        (
            "● healthy at step 120: mean reward rose from 0.276 to 0.809, still rising, 5 rules found nothing; noted: plateau",
        ),
    ),
    (
        seen(run=make_run(columns={**COLUMNS, "critic/score/mean": [-0.6, -0.7] * 60})),
        "good",
        ("● healthy at step 120: mean reward steady at -0.65, 5 rules found nothing",) * 2,
    ),
    (
        seen(run=make_run(columns=NO_ENTROPY), unjudged=EVERY[3:4]),
        "dim",
        (
            "○ nothing found: 4 of 5 rules checked it (not logged: entropy)",
            "○ nothing found: 4 of 5 rules checked it (not logged: entropy)",
            "○ nothing found (not logged: entropy)",
            "○ nothing found",
        ),
    ),
    (
        seen(run=make_run(), unjudged=EVERY[2:]),
        "dim",
        (
            "○ no verdict: 2 of 5 rules checked it (not logged: KL, entropy, response length)",
            *["○ no verdict (not logged: KL, entropy, response length)"] * 2,
            "○ no verdict",
        ),
    ),
    (
        seen(replace(COLLAPSE, id="crash", cause="killed: python train.py is gone")),
        "critical",
        ("✖ killed: python train.py is gone at 60 → stop the run", "✖ killed at 60 → "),
    ),
    (seen(run=make_run(steps=0)), "dim", ("◌ waits for the first step",) * 4),
    (seen(run=crashed()), "dim", ("○ no step was logged → read the end of its log",)),
    (make_view(), "dim", ("◌ no run yet",) * 4),
    (replace(seen(COLLAPSE), loading=True), "dim", ("◌ reading 45%",) * 4),
)  # fmt: skip
"""What is shown, its role, and what its row begins with in 138, 78, 58 and 40 columns."""


@pytest.mark.parametrize(("view", "role", "rows"), CASES)
def test_the_row_says_the_cause_since_when_and_what_to_do(view, role, rows):
    for width, height, expected in zip(
        (138, 78, 58, 40), (1, 1, 1, 2), rows, strict=False
    ):
        shown = verdict_rows(view, width, height)
        assert text_of(shown[0]).startswith(expected), width
        assert shown[0][0][1] == role
    for width in range(20, 221):
        for row in verdict_rows(view, width, 1 if width >= 60 else 2):
            assert cell_len(text_of(row)) <= width
            assert (
                "since 60" in text_of(row)
                or view is not CASES[0][0]
                or row[0][0] != "✖"
            )


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (55, 1, "✖ policy collapse since 60 → stop the run and…       +1"),
        (60, 1, "✖ policy collapse since 60 → stop the run and resume…     +1"),
        (22, 2, "✖ policy… since 60  +1\n→ stop the run and…"),
        (30, 2, "✖ policy collapse since 60  +1\n→ stop the run and resume…"),
    ],
)
def test_advice_is_cut_behind_a_word(width, height, expected):
    rows = verdict_rows(seen(COLLAPSE, KL), width, height)
    assert "\n".join(map(text_of, rows)) == expected


def test_what_a_preview_shows_is_said_to_be_one():
    run = make_run(columns=COLUMNS)
    run.preview = True
    view = replace(seen(COLLAPSE, run=run), loading=True)
    for width, height in ((138, 1), (78, 1), (58, 1), (40, 2)):
        row = text_of(verdict_rows(view, width, height)[0])
        assert row.startswith("✖ policy collapse"), width
        assert row.endswith("  reading 45%"), width


def agreed(view):
    """Return the role that the row, the count and the list of runs have for the only run."""
    assert view.run is not None
    beside = make_run("other", steps=0)
    monitor = view.monitor
    monitor.runs["other"] = beside
    (role,) = {one for words, one in tally(view) if words.strip()[:1].isdigit()} - {
        "dim"
    } or {"dim"}
    listed = lay_out(view, [view.run], 60, 9, titled=False).rows[0]()
    assert listed[1][1] == role
    del monitor.runs["other"]
    return role


@given(
    st.lists(st.sampled_from([COLLAPSE, KL, PLATEAU]), unique_by=lambda one: one.id),
    st.sets(st.sampled_from(EVERY)),
    st.sets(st.sampled_from(sorted(COLUMNS))),
    st.booleans(),
    st.sampled_from([0.0, 5000.0, 1e6]),
)
def test_it_is_never_green_without_evidence_and_all_say_the_same(
    found, unjudged, logged, acknowledge, quiet
):
    columns = {key: COLUMNS[key] for key in logged}
    run = make_run(columns=columns, quiet=quiet)
    view = seen(*found, run=run, unjudged=tuple(unjudged))
    for one in found if acknowledge else ():
        view.acknowledgements.toggle(run.name, one)
    role = headline(view).role
    assert role == agreed(view)
    if role == "good":
        assert logged == set(COLUMNS)
        assert coverage_of(run, view.verdict).complete
        assert not {one.severity for one in found} - {Severity.INFO}
    elif found and not acknowledge:
        worst = max(one.severity for one in found)
        assert worst is Severity.INFO or role == worst.word
    assert ("good" in {one for _, one in one_row(view, 200, alone=False)}) <= (
        role == "good"
    )


@pytest.mark.parametrize(
    "make",
    [
        *(partial(HEALTHY[name], random.Random(name)) for name in sorted(HEALTHY)[::6]),
        *(partial(planted, one, one.dialects[0], 0) for one in FAILURES[::12]),
    ],
)
def test_planted_failures_and_healthy_runs_are_told_apart(make, tmp_path):
    made = make()
    world = made if isinstance(made, World) else made[0]
    path = write(world, tmp_path / "run", FORMS[world.dialect][0])
    monitor = load([str(path)], Config(), NOW)
    (run,) = monitor.runs.values()
    view = View(monitor, run, NOW)
    verdict = view.verdict
    calm = not verdict.severity and coverage_of(run, verdict).complete
    assert (headline(view).role == "good") <= calm
    for finding in verdict.primary:
        assert finding.headline != finding.id, "its rule names it in words"


async def test_a_key_goes_through_the_findings_of_all_runs(tmp_path):
    write_run(tmp_path, "a_sane", 40)
    write_run(tmp_path, "b_warned", 40, response_length_mean=300.0)
    log = write_run(tmp_path, "c_broken", 30)
    log.write_text(log.read_text() + records(31, 60, kl_div=0.3))
    app = loaded(tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot)
        assert "3 runs: 1 ✖ 1 ▲ 1 ○" in lines(app)[1]
        shown = []
        for _ in range(4):
            await press(pilot, "!")
            chosen = dashboard(app).chosen_finding
            assert app.cursor == chosen.since_step
            shown.append((app.view_at(NOW).run.name, chosen.id))
        assert [name for name, _ in shown] == ["c_broken", "b_warned"] * 2
        await press(pilot, "@")
        assert app.view_at(NOW).run.name == "c_broken"


async def test_samples_go_to_a_finding_of_another_run_that_gives_panels_other_room(
    tmp_path,
):
    said = sample(1, "of 1") + sample(30, "of 30")
    write_run(tmp_path, "a", text=said)
    write_run(tmp_path, "b", kl_div=9.0, response_length_mean=300.0, text=said)
    app = loaded(tmp_path)
    async with app.run_test(size=(40, 12)) as pilot:
        await press(pilot, "!")
        await quiet(pilot)
        check_shown(app, "✖ circuit-breaker-kl", "of 1 ")


async def test_health_goes_once_the_verdict_says_all_there_is(demo):
    app = showing(demo)
    async with app.run_test(size=(140, 45)):
        board = dashboard(app)
        for found, shown in (((COLLAPSE, KL), True), ((KL,), False), ((), False)):
            board.view = seen(*found)
            board.fit_rooms()
            assert board.query_one(HealthPanel).display is shown
