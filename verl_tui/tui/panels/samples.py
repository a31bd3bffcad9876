"""The samples of the shown run, one at a time: prompt, response and score."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from textual.message_pump import MessagePump

from verl_tui.rendering.arrange import TALL
from verl_tui.rendering.samples.browse import Browse, Marked
from verl_tui.rendering.samples.document import Document
from verl_tui.rendering.samples.export import whole
from verl_tui.rendering.samples.words import (
    caption,
    header,
    marked_words,
    short_row,
    why_none,
)
from verl_tui.runs.cached import LastResult
from verl_tui.runs.samples import Place, Samples
from verl_tui.runs.views.state import is_of_one_step
from verl_tui.tui.keys import SAMPLES, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.panel import PanelSpec, TextPanel
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.rows import Line, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.on_demand.score_map import ScoreMap
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces


_ALL = 1 << 30


class DocumentRows(Rows):
    """Shows a document; at the ends of a folded one it is unfolded first."""

    LOOKS = "samples"

    def __init__(self, owner: SampleMoves, *, id: str | None = None) -> None:
        """Make the rows for what shows samples in them."""
        super().__init__(id=id)
        self._owner = owner
        self.document: Document | None = None
        """The document that is shown."""
        self._of: object = None
        """What it was made of."""

    def show(self, *asked: Any, **look: Any) -> None:
        """Show the document of a sample; the arguments are those of `Document`."""
        if self.document is None or (asked, look) != self._of:
            self._of = asked, look
            self.document = document = Document(*asked, **look)
            document.grow(self._ahead)
            self.set(LazyRows(range(len(document)), document.row))

    def show_rows(self, rows: Sequence[Pieces]) -> None:
        """Show these rows in place of a document."""
        self.document = None
        self.set(rows)

    def go_to(self, row: int) -> None:
        """Show a row, with some before it; the document has to know it."""
        self._grow()
        top = max(0, row - self.size.height // 3)
        self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Wrap more before the end of the wrapped part comes into sight. What is being read stays:
        a newer sample must not replace it.
        """
        super().watch_scroll_y(old_value, new_value)
        self._grow()
        if new_value > 0 and self._owner.browse.stay():
            self._owner.redraw()

    @property
    def _ahead(self) -> int:
        return int(self.scroll_offset.y + 3 * max(1, self.size.height))

    def _grow(self, rows: int = 0) -> None:
        if self.document is not None and isinstance(self.rows, LazyRows):
            self.document.grow(max(rows, self._ahead))
            if len(self.document) != len(self.rows):
                self.set(self.rows.grown(range(len(self.document))))

    # -- moving ------------------------------------------------------------------------------------

    def _unfolded(self, way: int) -> bool:
        """Unfold at an end; return whether there was something to unfold."""
        at_end = self.scroll_y >= self.max_scroll_y if way > 0 else self.scroll_y <= 0
        return at_end and self._owner.read_on()

    def action_move(self, by: int) -> None:
        """Scroll by one, or unfold."""
        if not self._unfolded(by):
            super().action_move(by)

    def action_page(self, screens: float) -> None:
        """Scroll by so many screens, or unfold."""
        if not self._unfolded(1 if screens > 0 else -1):
            super().action_page(screens)

    def action_end(self, way: int) -> None:
        """Go to the first or last row of the whole text."""
        self._owner.read_on()
        if way > 0:
            self._grow(_ALL)
        super().action_end(way)


_MOST, _LEAST = 12, 3
"""Most rows that a sample asks for beside charts, and those kept for one that is not read yet."""
_FOLDED = frozenset({"prompt", "response"})
MOVES: list[BindingType] = actions("""
    n  go('to_sample', 1)    samples.next      Next sample
    p  go('to_sample', -1)   samples.previous  Previous sample
    N  go('to_step', 1)      samples.older     Older step
    P  go('to_step', -1)     samples.newer     Newer step
    b  go('to_extreme', 1)   samples.best      Best sample
    w  go('to_extreme', -1)  samples.worst     Worst sample
    v  go('to_kind')         samples.kind      Training or validation
    f  go('follow')          samples.follow    Follow
""")
"""Keys that lead from one sample to others, in the panel as on the screen."""


class SampleMoves(MessagePump):
    """What these keys do."""

    text: DocumentRows
    """The sample that is shown."""

    @property
    @abstractmethod
    def browse(self) -> Browse:
        """The sample that is shown, and the others."""

    @abstractmethod
    def redraw(self) -> None:
        """Draw that sample."""

    def moved(self, moved: bool) -> None:
        """Show the sample from its beginning if it is another one."""
        if moved:
            self.redraw()
            self.to_top()

    def to_top(self) -> None:
        """Show the beginning of the sample."""
        self.text.scroll_home(animate=False, immediate=True)

    def read_on(self) -> bool:
        """Unfold a sample when the user scrolls beyond its folded rows; return False if nothing of
        it is folded.
        """
        return False

    def clip(self) -> str:
        """Return the sample as it is copied."""
        sample = self.browse.sample
        return whole(sample) if sample else ""

    def action_go(self, way: str, *given: int) -> None:
        """Show another sample, by a method of `Browse`."""
        moved = getattr(self.browse, way)(*given)
        if not moved and way == "to_kind":
            toast(self.app, "no samples of the other kind")
        self.moved(moved)


class SamplesPanel(SampleMoves, TextPanel):
    """One sample, of the newest step until the user moves to others."""

    TITLE = "samples"
    ABRIDGED = True
    PANEL = PanelSpec("samples", "f6", "Samples", rank=50, tab=30, share=0.25)
    FOOTER = """
        samples.previous samples.next  Sample
        samples.older samples.newer    Step
        samples.best samples.worst     Best, worst
        samples.unfold                 Unfold
        samples.follow                 Follow
    """
    DEFAULT_CSS = "SamplesPanel > DocumentRows { scrollbar-gutter: stable; }"
    HELP_SECTION = HelpSection("samples, with the focus", SAMPLES, 30)
    BINDINGS = actions(
        MOVES,
        """
        u      unfold                  samples.unfold  Unfold
        enter  app.open_screen('samples')  samples.enter   All samples
        """,
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._header = Line()
        self._rows = self.text = DocumentRows(self)
        self._browses: dict[str, Browse] = defaultdict(Browse)
        """By run: each is shown as it was left."""
        self.marked: Marked | None = None
        """The sample that others are seen beside."""
        self._scores = LastResult()
        self.beside = False
        """True while the marked sample stands beside the shown one on the screen of samples."""
        self._unfolded = False
        """True while samples are shown whole."""
        self._drawn: tuple[Place, int] | None = None
        """The sample that was drawn last."""
        self._needed = LastResult()
        self._wanted: int | None = None
        """Step to go to in the next drawing."""

    def compose(self) -> ComposeResult:
        """Make the header, which stays while the sample scrolls, and the sample."""
        yield self._header
        yield self.text

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of the shown sample, as far as they are worth their room; one on a low
        screen, and where the run has no sample.
        """
        run = view.run
        if not run or not run.samples.places:
            return 1
        alone = is_of_one_step(run)  # then no chart wants the room
        if not alone and self.screen.size.height < TALL:
            return 1
        self.view = view
        self.settle()
        sample, most = self.browse.sample, height if alone else _MOST
        if not sample:
            return _LEAST
        size = width - 1, most - 1
        key = view.keys["samples.unfold"]

        def rows() -> int:
            document = Document(sample, *size, folded=_FOLDED, unfolds=key)
            document.grow(most)
            return min(most, len(document) + 1)

        return self._needed.of((sample, width, most), rows)

    def go_to(self, step: int) -> None:
        """Show the samples of the nearest step that has some, once a run is shown."""
        self._wanted = step
        self.moved(moved=True)

    @property
    def browse(self) -> Browse:
        """Which sample of the shown run is shown."""
        run = self.view.run
        return self._browses[run.name if run else ""]

    def scores_of(self, view: View, *, validation: bool) -> ScoreMap:
        """Return the scores of the shown run's prompts, and have them read in the background."""
        from verl_tui.on_demand.score_map import ScoreMap

        samples = view.run.samples if view.run else Samples()
        found = self._scores.of((samples, validation), ScoreMap)
        if found.show(samples, validation=validation):
            view.browser.run_later(found)
        return found

    def compare(self, one: Marked) -> str:
        """Mark a sample, or show it beside the marked one, or alone again; return what to say."""
        self.beside = not self.beside and self.marked not in (None, one)
        if self.beside:
            return ""
        self.marked = None if self.marked else one
        return f"marked: {marked_words(one)}" if self.marked else ""

    # -- drawing -----------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Find the sample for what the user has chosen of the shown run; return whether it is
        another one.
        """
        run, browse = self.view.run, self.browse
        if not run:
            return False
        step, self._wanted = self._wanted, None
        nearest = run.samples.nearest_place(step) if step is not None else None
        if nearest:
            browse.go_to(nearest)
        return browse.settle(run.samples, self.view.browser, run.end)

    def redraw(self) -> None:
        """Draw the chosen sample of the shown run."""
        self.settle()
        run, browse = self.view.run, self.browse
        width, height = self.content_size
        if not self.text.is_mounted or width < 2 or height < 1:
            return
        headed = browse.shown is not None and height > 1
        self._header.display = headed
        if headed:
            self._header.show(*header(browse, width))
        # The scrollbar comes and goes, the text stays where it is.
        self._draw_text(width - 1, height - headed)
        if browse.shown != self._drawn:
            self._drawn = browse.shown
            self.to_top()
        if run:
            self.subtitle(caption(browse, run.samples, self.view.keys))

    def _draw_text(self, width: int, height: int) -> None:
        browse = self.browse
        sample = browse.sample
        bare = self.has_class("-bare") and not self.has_class("-zoomed")
        short = bare and self.content_size.height == 1
        if not browse.page:
            self.text.show_rows(why_none(self.view, width, short=short))
        elif not sample:
            self.text.show_rows([[(browse.page.problem or "reading …", "dim")]])
        elif short:
            self.text.show_rows([short_row(browse, sample, width)])
        else:
            folded = frozenset() if self._unfolded else _FOLDED
            key = self.view.keys["samples.unfold"]
            self.text.show(sample, width, height, folded=folded, unfolds=key)

    # -- keys --------------------------------------------------------------------------------------

    def read_on(self) -> bool:
        """Unfold the sample, and keep it; return False if nothing of it is folded."""
        document = self.text.document
        if not document or self._unfolded or not document.hides:
            return False
        self.browse.stay()
        self.action_unfold()
        return True

    def action_unfold(self) -> None:
        """Show samples whole, or only their ends."""
        self._unfolded = not self._unfolded
        self.moved(moved=True)
