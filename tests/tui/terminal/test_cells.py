"""Only cells that change are written, and the terminal shows the same as if all of a row had
been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyte
from hypothesis import given
from hypothesis import strategies as st
from inside_textual import ChopsUpdate, LayoutUpdate
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from verl_tui.tui.terminal import cell_diff
from verl_tui.tui.terminal.cell_diff import Cells

if TYPE_CHECKING:
    import pytest

WIDTH, HEIGHT = 24, 4
CONSOLE = Console(force_terminal=True, color_system="truecolor")
STYLES = [
    None,
    Style(),
    Style(bold=True),
    Style.parse("#ff0000 on #101010"),
    Style.parse("reverse #00ff00"),
    Style.parse("#00ff00 on #101010"),
    Style.parse("bold #00ff00 on #101010"),
    Style.parse("bold italic underline #00ff00 on #303030"),
    Style.parse("red on default"),
    Style.parse("default on bright_blue"),
    Style.parse("color(200)"),
]
PIECE = st.tuples(
    st.sampled_from(["a", "b", " ", "12", "⣀⣤", "数学", "…", "e\u0301", "x" * 9]),
    st.sampled_from(STYLES),
)


def strip(pieces):
    """Return a row; its last column stays blank, where the emulator takes what joins a character
    for the next row.
    """
    made = Strip([Segment(text, style) for text, style in pieces])
    return made.adjust_cell_length(WIDTH - 1).adjust_cell_length(WIDTH)


ROW = st.lists(PIECE, max_size=14).map(strip)
CHANGE = st.tuples(
    st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH), ROW
)


class Pair:
    """Two terminals: one is written as Textual does, one by us."""

    def __init__(self):
        self.cells = Cells()
        self.screens = [pyte.Screen(WIDTH, HEIGHT) for _ in range(2)]
        self.streams = [pyte.Stream(screen) for screen in self.screens]

    def show(self, update):
        """Write to both; return how many bytes each took."""
        texts = [
            one.render_segments(CONSOLE) for one in (update, self.cells.diffed(update))
        ]
        for stream, text in zip(self.streams, texts, strict=True):
            stream.feed(text)
        return [len(text) for text in texts]

    def assert_alike(self):
        plain, thin = (
            [[screen.buffer[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]
            for screen in self.screens
        )
        assert plain == thin


def frame(rows):
    return LayoutUpdate([[row] for row in rows], Region(0, 0, WIDTH, HEIGHT))


def change(spans, rows, cut=WIDTH // 2):
    """Regions of the screen, on which two widgets stand side by side."""
    chops = [{0: row.crop(0, cut), cut: row.crop(cut, WIDTH)} for row in rows]
    return ChopsUpdate(chops, spans, [[cut, WIDTH]] * HEIGHT)


@given(
    rows=st.lists(ROW, min_size=HEIGHT, max_size=HEIGHT),
    changes=st.lists(CHANGE, max_size=8),
)
def test_the_terminal_shows_the_same(rows, changes):
    pair = Pair()
    pair.show(frame(rows))
    for y, x, width, row in changes:
        rows[y] = row
        whole = width == WIDTH
        pair.show(
            frame(rows) if whole else change([(y, x, min(WIDTH, x + width))], rows)
        )
        pair.assert_alike()
    pair.show(frame(rows))
    pair.assert_alike()


def test_a_number_costs_its_digits():
    pair = Pair()
    one, other = (
        strip([("step ", STYLES[3]), (str(n), STYLES[2]), (" of 900", STYLES[3])])
        for n in (123, 124)
    )
    pair.show(frame([one] * HEIGHT))
    plain, thin = pair.show(change([(0, 0, WIDTH)], [other] * HEIGHT))
    assert plain > 80
    assert thin <= len("\x1b[0;1m\x1b[1;8H4\x1b[0m")
    assert pair.show(change([(0, 0, WIDTH)], [other] * HEIGHT))[1] == 0


def test_a_colour_costs_what_differs_from_the_one_before():
    pair = Pair()
    before, after = (
        strip([("reward ", STYLES[3]), (sign, STYLES[5]), (sign * 2, STYLES[6])])
        for sign in "ab"
    )
    pair.show(frame([before] * HEIGHT))
    assert "48;2;16;16;16" in (written := written_by(pair, [after] * HEIGHT))
    assert written.count("48;2;16;16;16") == 1, "they share their ground"
    pair.assert_alike()


def written_by(pair, rows):
    """Return what we write for a frame, and show it."""
    update = frame(rows)
    text = pair.cells.diffed(update).render_segments(CONSOLE)
    pair.streams[0].feed(update.render_segments(CONSOLE))
    pair.streams[1].feed(text)
    return text


def test_a_frame_that_is_there_costs_nothing_unless_it_may_be_lost():
    pair = Pair()
    one, other = (strip([(f"step {n}", STYLES[3])]) for n in (1, 2))
    rows = [one] * HEIGHT
    first = pair.show(frame(rows))
    assert pair.show(frame(rows))[1] == 0
    assert 0 < pair.show(frame([*rows[1:], other]))[1] < first[1] / 4
    pair.assert_alike()
    pair.show(frame(rows))
    pair.cells.forget()
    assert pair.show(frame(rows))[1] == first[1]


def test_of_a_row_whose_widths_terminals_disagree_on_all_is_written():
    one, other = (strip([("👍🏽 ok ", STYLES[3]), (sign, STYLES[3])]) for sign in "ab")
    written = Cells()
    for update in (frame([one] * HEIGHT), change([(0, 0, WIDTH)], [other] * HEIGHT)):
        text = written.diffed(update).render_segments(CONSOLE)
    assert "👍🏽 ok b" in text


def test_another_size_begins_with_a_whole_frame():
    written = Cells()
    row = strip([("abc", STYLES[3])])
    before = written.diffed(change([(2, 0, WIDTH)], [row] * HEIGHT)).render_segments(
        CONSOLE
    )
    assert "abc" in before, "nothing is known of the terminal yet"
    assert written.diffed(None) is None


def test_a_wide_character_is_two_cells():
    signs, inks = Cells().row([strip([("数", None)])])
    assert signs[0] == "数"
    assert signs[2] == " "
    assert len(signs) == len(inks) == WIDTH


def test_what_joins_a_character_shares_its_cell():
    written = Cells()
    pieces = [
        ("数", STYLES[2]),
        ("\u0301", STYLES[3]),
        ("e\u0301\u0302", STYLES[3]),
        ("\u0303\U000f0001", None),
    ]
    signs, inks = written.row([Strip([Segment(text, style) for text, style in pieces])])
    assert len(signs) == len(inks) == 4
    text = written.diffed(frame([strip(pieces)])).render_segments(CONSOLE)
    for whole in ("数\u0301", "e\u0301\u0302\u0303", "\U000f0001"):
        assert whole in text


def test_an_alphabet_that_has_grown_too_long_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell_diff, "_MOST", 3)
    pair = Pair()
    for n in range(30):
        pair.show(
            frame([strip([(f"a{chr(0x300 + n)}", Style.parse(f"#{n:06x}"))])] * HEIGHT)
        )
        pair.assert_alike()
    assert len(pair.cells._inks) <= 4 + 2


def test_what_does_not_fill_its_place_leaves_what_stands_behind_it():
    pair = Pair()
    pair.show(frame([strip([("x" * WIDTH, STYLES[2])])] * HEIGHT))
    chops = [
        {0: Strip([Segment("ab")]), 8: None, 12: Strip([Segment("cd", STYLES[3])])}
    ] * HEIGHT
    pair.show(
        ChopsUpdate(chops, [(1, 0, WIDTH), (2, 1, 13)], [[8, 12, WIDTH]] * HEIGHT)
    )
    pair.assert_alike()
    pair.show(frame([strip([("y" * WIDTH, STYLES[2])])] * HEIGHT))
    pair.assert_alike()
