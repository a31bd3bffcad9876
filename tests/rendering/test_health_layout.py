"""The rows of the health panel: badges, findings and what is chosen and unfolded among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, NotJudged, Severity, Verdict
from verl_tui.rendering.health_layout import FindingList, HealthLayout, caption

COLLAPSE = Finding(
    "collapse", Severity.CRITICAL, "The reward fell.", 90, 80, ("0.4",), "Stop."
)
KL = Finding("kl-high", Severity.WARNING, "The KL is high.", 90, 70, advice="Raise it.")
CLIPPED = Finding(
    "clipped", Severity.INFO, "Answers are cut.", 90, 60, consequence_of="collapse"
)
SKIPPED = NotJudged("gpu-idle", "the log has no GPU")


def listed(
    *findings: Finding, skipped: tuple[NotJudged, ...] = (SKIPPED,)
) -> FindingList:
    verdict = Verdict(findings, skipped)
    return FindingList(make_view(make_run(), verdicts={"grpo": verdict}))


def laid_out(
    shown: FindingList, width: int = 60, height: int = 30, *, counted: bool = False
) -> HealthLayout:
    assert shown.view is not None
    return shown.lay_out(shown.view, width, height, counted=counted)


def words(layout: HealthLayout) -> list[str]:
    return ["".join(text for text, _ in row) for row in layout.rows]


def test_findings_start_where_the_layout_says() -> None:
    layout = laid_out(listed(COLLAPSE, KL))
    assert [words(layout)[at].split()[1] for at in layout.starts] == [
        "collapse",
        "kl-high",
    ]
    assert layout.not_judged is not None
    assert words(layout)[layout.not_judged].startswith("1 rule not applicable")


def test_a_consequence_is_listed_below_its_unfolded_cause() -> None:
    shown = listed(CLIPPED, COLLAPSE, KL)
    assert shown.findings == (COLLAPSE, KL)
    shown.toggle(COLLAPSE)
    assert shown.findings == (COLLAPSE, CLIPPED, KL)
    assert "· 0.4" in "\n".join(words(laid_out(shown)))
    shown.toggle(COLLAPSE)
    assert shown.findings == (COLLAPSE, KL)


def test_empty_rows_between_findings_only_where_all_fit() -> None:
    spaced = laid_out(listed(COLLAPSE, KL), height=30).rows
    tight = laid_out(listed(COLLAPSE, KL), height=len(spaced) - 1).rows
    assert len(tight) == len(spaced) - 1


@pytest.mark.parametrize("height", [1, 3])
def test_a_low_panel_has_badges_with_the_chosen_one_first(height: int) -> None:
    shown = listed(COLLAPSE, KL)
    shown.choose(KL)
    layout = laid_out(shown, height=height)
    assert words(layout)[0].index("kl-high") < words(layout)[0].index("collapse")
    assert len(layout.rows) <= height
    assert (layout.starts, layout.not_judged) == ((), None)


def test_a_badge_that_is_alone_says_since_when() -> None:
    (row,) = words(laid_out(listed(COLLAPSE), width=40, height=1))
    assert row.startswith("✖ collapse ")
    assert row.endswith(" since step 80")
    assert len(row) == 40
    assert words(laid_out(listed(COLLAPSE), width=12, height=1)) == ["✖ collapse"]


def test_a_message_that_is_cut_fills_its_last_row() -> None:
    message = (
        "the run crashed while validating: requests.exceptions.ChunkedEncodingError"
    )
    crash = Finding("crash", Severity.CRITICAL, message, 90, 80)
    assert words(laid_out(listed(crash), width=40, height=3))[1:] == [
        "  the run crashed while validating:",
        "  requests.exceptions.ChunkedEncodingEr…",
    ]
    assert words(laid_out(listed(crash), width=40, height=2))[1:] == [
        "  the run crashed while validating: req…"
    ]


LONG = "the run crashed while validating: the connection was broken after it had been idle for long"


def test_messages_are_cut_rather_than_a_finding_scrolled_out_of_sight() -> None:
    crash = replace(COLLAPSE, id="crash", message=LONG)
    shown = listed(crash, replace(KL, message=LONG))
    layout = laid_out(shown, width=40, height=5)
    heads = [words(layout)[at].split()[1] for at in layout.starts]
    assert (heads, list(layout.starts)) == (["crash", "kl-high"], [0, 3])
    assert words(layout)[1:3] == [
        "  the run crashed while validating: the",
        "  connection was broken after it had be…",
    ], "the worst finding is cut least"
    assert words(layout)[4] == "  the run crashed while validating: the…"
    shown.toggle(crash)
    unfolded = words(laid_out(shown, width=40, height=5))
    assert len(unfolded) > 5, "what is unfolded is scrolled, and not cut"
    assert not any(row.endswith("…") for row in unfolded)


def test_choosing_goes_round_in_a_circle() -> None:
    shown = listed(COLLAPSE, KL)
    assert [shown.choose_next(1) for _ in range(3)] == [COLLAPSE, KL, COLLAPSE]
    assert shown.choose_next(-1) == KL
    assert shown.at == 1
    shown.forget_choices()
    assert shown.chosen is None
    assert listed().choose_next(1) is None


def test_a_run_without_findings_says_so() -> None:
    assert "nothing found" in words(laid_out(listed()))[0]
    (row,) = words(laid_out(listed(), height=1))
    assert row.startswith("health ○ nothing found"), "without an edge for its title"
    assert (
        "waiting for a run"
        in words(FindingList(make_view()).lay_out(make_view(), 60, 9))[0]
    )


def test_no_run_is_said_to_be_read_before_one_is_found() -> None:
    view = make_view(loading=True)
    assert words(FindingList(view).lay_out(view, 60, 9)) == ["○ waiting for a run"]


def test_rules_not_judged_are_counted_in_the_caption_or_in_a_row() -> None:
    shown = listed(COLLAPSE, KL)
    assert shown.view is not None
    assert laid_out(shown, counted=True).not_judged is None
    assert "1 not applicable" in caption(shown.view, 60)
    shown.reasons = True
    layout = laid_out(shown, counted=True)
    assert layout.not_judged is not None
    assert words(layout)[layout.not_judged] == "1 rule not applicable"
    assert caption(shown.view, 60, reasons=True) == "1 critical · 1 warning"


def test_the_caption_shortens_until_it_fits() -> None:
    view = listed(COLLAPSE, KL).view
    assert view is not None
    assert caption(view, 60) == "1 critical · 1 warning · 1 not applicable (v: why)"
    assert caption(view, 8) == "✖ 1  ▲ 1"
    assert caption(view, 3) == ""
    assert caption(make_view(), 60) == ""


def test_two_short_findings_are_rows_and_no_badges() -> None:
    shown = listed(COLLAPSE, KL, skipped=())
    assert shown.view is not None
    assert shown.needed(shown.view, 60) == 4
    layout = laid_out(shown, height=4)
    assert [line.strip() for line in words(layout)][1::2] == [
        COLLAPSE.message,
        KL.message,
    ]
    assert list(layout.starts) == [0, 2]


def test_what_was_not_judged_gives_its_row_to_findings() -> None:
    full = laid_out(listed(COLLAPSE, KL), height=6)
    assert full.not_judged == 5
    tight = laid_out(listed(COLLAPSE, KL), height=5)
    assert (tight.not_judged, [] in tight.rows) == (4, False)
    assert laid_out(listed(COLLAPSE, KL), height=4).not_judged is None


def test_rows_are_asked_for_what_was_found_and_for_reasons_only_where_they_are_shown() -> (
    None
):
    shown = listed(COLLAPSE, KL, CLIPPED)
    assert shown.view is not None
    found = shown.needed(shown.view, 60)
    assert laid_out(shown, height=found).not_judged is None
    shown.reasons = True
    assert shown.needed(shown.view, 60) > found


@given(
    st.lists(st.text(" ab", min_size=1, max_size=200), max_size=5),
    st.integers(10, 80),
    st.integers(1, 14),
    st.booleans(),
    st.booleans(),
)
def test_no_row_is_empty_while_something_is_cut(
    messages: list[str], width: int, height: int, skipped: bool, counted: bool
) -> None:
    found = (
        Finding(f"r{at}", Severity.WARNING, f"x{message}", 9, 3)
        for at, message in enumerate(messages)
    )
    shown = listed(*found, skipped=(SKIPPED,) if skipped else ())
    layout = laid_out(shown, width, height, counted=counted)
    rows = words(layout)
    if len(rows) > height or any("…" in row for row in rows):
        assert all(row.strip() for row in rows)
        assert len(rows) >= min(height, 1 + len(messages))


def test_badges_leave_the_rows_below_to_as_many_messages_as_fit() -> None:
    layout = laid_out(listed(COLLAPSE, KL, replace(KL, id="kl-low")), height=4)
    assert [row.strip() for row in words(layout)[1:]] == [
        f"✖ {COLLAPSE.message}",
        f"▲ {KL.message}",
        f"▲ {KL.message}",
    ]
