"""Zooming and panning over steps, without a screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from run_views import ACTIONS, make_run

from verl_tui.rendering.charts.axes import ZoomSpan, holding, panned, zoomed
from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.tui.widgets.chart import KEYS, look_after, why_unchanged

wholes = st.tuples(st.integers(-50, 10**6), st.integers(0, 10**6)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("zoom"),
            st.sampled_from([0.5, 2.0]),
            st.none() | st.integers(-100, 10**6),
        ),
        st.tuples(st.just("pan"), st.sampled_from([-1, 1]), st.none()),
        st.tuples(st.just("hold"), st.just(0), st.integers(-100, 10**6)),
    ),
    max_size=12,
)


@given(wholes, wholes, moves)
def test_whatever_is_pressed_something_of_the_run_is_shown(before, after, pressed):
    span: ZoomSpan | None = None
    for number, (what, how, at) in enumerate(pressed):
        whole = before if number < 6 else after  # the run has grown, or is another one
        if what == "zoom":
            span = zoomed(span, whole, how, at=at)
        elif what == "pan":
            span = panned(span, whole, how)
        else:
            span = holding(span, whole, at)
        if span is not None:
            for reach in (before, after):
                first, last = span.shown(reach)
                assert reach[0] <= first <= last <= reach[1]
                assert last - first <= span.length + max(1, span.length // 4)


# -- the look --------------------------------------------------------------------------------------


def test_every_key_changes_the_look_and_has_words_for_it():
    run = make_run(steps=200)
    for what, words in (
        ("axis", "x: time"),
        ("log", "log y"),
        ("outliers", "y without outliers"),
    ):
        assert list(look_after(ChartLook(), what, run).words(run)) == [words]
    near = look_after(ChartLook(), "in", run)
    assert list(near.words(run)) == ["from step 100"]
    past = look_after(near, "earlier", run)
    assert list(past.words(run)) == ["steps 50–150"]
    assert look_after(past, "later", run) == near
    assert look_after(near, "out", run) == ChartLook()
    assert {key.action for key in KEYS} == {
        f"look('{what}')"
        for what in (
            "axis",
            "log",
            "outliers",
            "smoother",
            "rougher",
            "in",
            "out",
            "earlier",
            "later",
        )
    }


def test_at_an_end_moving_on_says_why_nothing_moves():
    run = make_run(steps=200)
    near = look_after(ChartLook(), "in", run)
    assert why_unchanged(near, "later", run, ACTIONS) == "step 200 is the newest"
    assert not why_unchanged(near, "earlier", run, ACTIONS)
    first = look_after(look_after(near, "earlier", run), "earlier", run)
    assert why_unchanged(first, "earlier", run, ACTIONS) == "step 1 is the first"
    assert not why_unchanged(first, "later", run, ACTIONS)
    assert "are shown already" in why_unchanged(ChartLook(), "out", run, ACTIONS)
    raw = ChartLook(smoothing=0.0)
    assert "as far as it goes" in why_unchanged(raw, "rougher", run, ACTIONS)
