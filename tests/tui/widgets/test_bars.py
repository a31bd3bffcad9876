"""Histograms as bars and in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.distributions import BINS, Bins, of_values
from verl_tui.rendering.charts.sparkline import bars, histogram_words


def test_words():
    assert (
        histogram_words(of_values([0.0] * 3 + [1.0]).bins)
        == "4 values from 0 to 1, 75% of them from 0 to 0.0333"
    )
    assert (
        histogram_words(of_values([0.5] * 7).bins, "tokens")
        == "7 values, all 0.5 tokens"
    )
    assert (
        histogram_words(Bins(0.0, 1.0, [0.0] * BINS))
        == "0 values from 0 to 1, none of them from 0 to 0.0333"
    )


@given(
    counts=st.lists(st.floats(0, 1e6), min_size=BINS, max_size=BINS).filter(any),
    width=st.integers(1, 150),
)
def test_bars_fit_and_every_filled_bin_is_seen(counts, width):
    rows = bars(counts, width, 4)
    assert len(rows) == 4
    assert max(map(len, rows)) <= width
    assert rows[0].strip(), "the tallest is as high as there are rows"
    if width >= BINS:
        assert {at for at, count in enumerate(counts) if count > 0} == {
            at // (min(3, width // BINS))
            for at, sign in enumerate(rows[-1])
            if sign != " "
        }
