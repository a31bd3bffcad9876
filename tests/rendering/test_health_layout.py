"""The rows of the health panel: findings and what is chosen and unfolded among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict
from verl_tui.rendering.health_rows import FindingList, reason_words
from verl_tui.rendering.text.piece import text_of

COLLAPSE = Finding(
    "collapse", Severity.CRITICAL, "The reward fell.", 90, 80, ("0.4",), "Stop."
)
KL = Finding("kl-high", Severity.WARNING, "The KL is high.", 90, 70, advice="Raise it.")
SKIPPED = NotJudged("gpu-idle", "the log has no GPU")


def listed(*findings, skipped=(SKIPPED,)):
    verdict = Verdict(findings, skipped)
    return FindingList(make_view(make_run(), verdicts={"grpo": verdict}))


def laid_out(shown, width=60, height=30):
    return shown.lay_out(width, height)


def words(layout):
    return [*map(text_of, layout.rows)]


def test_what_was_not_checked_is_counted_in_full():
    late = NotJudged("kl-high", "needs 141 points, has 123")
    shown = listed(skipped=(*[SKIPPED] * 30, *[late] * 10))
    shown.reasons = True
    counts = words(laid_out(shown, width=40))[-51:]
    assert "30 rules not applicable, 10 not checked yet" in " ".join(counts)


LONG = "the run crashed while validating: the connection was broken after it had been idle for long"


def test_messages_are_cut_rather_than_a_finding_scrolled_out_of_sight():
    crash = replace(COLLAPSE, id="crash", message=LONG)
    shown = listed(crash, replace(KL, message=LONG))
    layout = laid_out(shown, width=40, height=4)
    heads = [words(layout)[at].split()[1] for at in layout.starts]
    assert (heads, list(layout.starts)) == (["crash", "kl-high"], [0, 2])
    assert words(layout)[1] == "  the run crashed while validating: the…"
    assert words(layout)[3] == "  the run crashed while validating: the…"
    shown.toggle(crash)
    unfolded = words(laid_out(shown, width=40, height=5))
    assert len(unfolded) > 5, "what is unfolded is scrolled, and not cut"
    assert not any(row.endswith("…") for row in unfolded)


@given(
    st.lists(st.text(" ab", min_size=1, max_size=200), max_size=5),
    st.integers(10, 80),
    st.integers(1, 14),
    st.booleans(),
)
def test_no_row_is_empty_while_something_is_cut(messages, width, height, skipped):
    found = (
        Finding(f"r{at}", Severity.WARNING, f"x{message}", 9, 3)
        for at, message in enumerate(messages)
    )
    shown = listed(*found, skipped=(SKIPPED,) if skipped else ())
    layout = laid_out(shown, width, height)
    rows = words(layout)
    if len(rows) > height or any("…" in row for row in rows):
        assert all(row.strip() for row in rows)
        assert len(rows) >= min(height, 1 + len(messages))


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("needs 141 points, has 123; the task is not solved", "123 of 141 points so far"),
        ("judged from 1 on; needs 31 points, has 20", "20 of 31 points so far"),
        ("the log has no b or c; the log has no b", "the log has no b or c"),
        ("the log has no b; judged by x", "the log has no b; judged by x"),
        ("failed: KeyError()", "failed: KeyError()"),
    ],
)  # fmt: skip
def test_reasons_are_said_once(reason, said):
    assert reason_words(reason) == said
