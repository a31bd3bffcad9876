"""How the list of runs is laid out in the room of its panel."""

from __future__ import annotations

from math import nan

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.rendering.run_list import lay_out, run_strip
from verl_tui.rendering.text.piece import text_of


def words(rows):
    return [text_of(row()) for row in rows.rows]


def test_the_reading_of_logs_stands_above_the_runs():
    listed = [make_run("run-0"), make_run("run-1")]
    rows = lay_out(make_view(*listed, loading=True), listed, 40, 9, titled=True)
    assert words(rows)[0].startswith("reading 45%")
    assert rows.starts == [1, 2]


def test_a_column_that_is_empty_for_all_runs_is_left_out():
    listed = [make_run("run-0"), make_run("run-1", columns={"actor/grad": [nan] * 120})]
    view = make_view(*listed)
    view.listing.keep(run_columns=("reward", "lr", "actor/grad"))
    rows = lay_out(view, listed, 100, 9, titled=True)
    assert text_of(rows.heading).split() == ["reward", "actor/grad"]
    assert ("nan", "odd") in rows.rows[1]()


def test_the_strip_has_a_run_on_either_side_that_has_room():
    before, shown, after = (make_run(name, 3) for name in ("a", "b", "the-next"))
    row = run_strip(make_view(shown), [before, shown, after], 48)
    assert text_of(row) == " ○ a step 3/500  ▸○ b step 3/500  +1"


@given(
    st.lists(
        st.text("ab-", min_size=1, max_size=40), min_size=1, max_size=9, unique=True
    ),
    st.integers(8, 76),
    st.data(),
)
def test_states_stand_in_one_column_and_badges_shift_no_row(names, width, data):
    steps = [data.draw(st.sampled_from([0, 3, 120, 500])) for _ in names]
    listed = [make_run(name, count) for name, count in zip(names, steps, strict=True)]
    found = Finding("kl-high", Severity.WARNING, "The KL is high.")
    plain = short(listed, width, {})
    found_rows = short(listed, width, {listed[-1].name: Verdict((found,) * 12)})
    (cells,) = {cell_len(row) for row in plain}
    assert cells <= width
    assert [row[5:] for row in plain] == [row[5:] for row in found_rows]
    states = {"running", "finished", "waiting", "training"}
    places = {
        row.find(word) for row in plain for word in states if f" {word} " in f"{row} "
    }
    assert len(places) <= 1


def short(listed, width, verdicts):
    view = make_view(*listed, verdicts=verdicts)
    return words(lay_out(view, listed, width, len(listed), titled=False))
