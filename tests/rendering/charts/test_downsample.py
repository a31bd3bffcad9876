"""The trend of a series."""

from __future__ import annotations

from verl_tui.rendering.charts.downsample import trend


def test_no_arrow_tells_of_a_change_that_the_chart_cannot_show() -> None:
    creeping = [0.03 + 0.0002 * at for at in range(40)]
    assert trend(creeping) == 1
    assert trend(creeping, (0.0, 0.05)) == 1
    assert trend(creeping, (0.0, 4.7)) == 0
    assert trend([4.7 - value for value in creeping], (0.0, 4.7)) == 0
    assert trend([0.7] * 20 + [0.5] * 20, (0.0, 4.7)) == -1
    assert trend([0.7] * 34 + [0.1] * 6) == -1, "a collapse at the end"
    assert trend([0.7] * 39 + [0.1]) == 0, "one value turns nothing"
    assert trend([0.0] * 15 + [0.2] * 9 + [0.0] * 6) == -1, "it rose, and fell to 0"
