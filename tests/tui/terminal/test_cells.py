"""Only cells that change are written, and the terminal shows the same as if all of a row had
been.
"""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from inside_textual import ChopsUpdate, LayoutUpdate
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from verl_tui.tui.terminal.output import Cells

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
    Style.parse("#00ff00 on #303030"),
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
        texts = [update.render_segments(CONSOLE), self.cells.diffed(update, CONSOLE)]
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


def test_what_joins_a_character_shares_its_cell():
    written = Cells()
    pieces = [
        ("数\u0301", STYLES[2]),
        ("e\u0301\u0302\u0303", STYLES[3]),
        ("\U000f0001", None),
    ]
    signs, inks = written.row([Strip([Segment(text, style) for text, style in pieces])])
    assert len(signs) == len(inks) == 4
    text = written.diffed(frame([strip(pieces)]), CONSOLE)
    for whole in ("数\u0301", "e\u0301\u0302\u0303", "\U000f0001"):
        assert whole in text


def test_of_colours_only_what_changes_is_written():
    pieces = [("ab", STYLES[5]), ("cd", STYLES[6]), ("ef", STYLES[7])]
    text = Cells().diffed(frame([strip(pieces)]), CONSOLE)
    assert "\x1b[48;2;16;16;16m" in text, "another ground"
    assert "\x1b[1mcd" in text, "an attribute more"
