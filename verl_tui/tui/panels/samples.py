"""The samples of the shown run, one at a time: prompt, response and score."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from textual.message import Message

from verl_tui.rendering.arrange import TALL
from verl_tui.rendering.last_result import LastResult
from verl_tui.rendering.samples.browse import Browse
from verl_tui.rendering.samples.document import Document
from verl_tui.rendering.samples.export import whole
from verl_tui.rendering.samples.words import (
    caption,
    sample_words,
    short_row,
    strip,
    why_none,
)
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.piece import cells_of
from verl_tui.runs.views.state import is_evaluation
from verl_tui.tui.keys.act import SAMPLES, HelpSection, act
from verl_tui.tui.panels.panel import Panel, PanelSpec
from verl_tui.tui.widgets.document_rows import DocumentRows
from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.samples import Place

_MOST, _LEAST = 12, 3
"""Most rows that a sample asks for, and those kept for one that is not read yet."""
_FOLDED = frozenset({"prompt", "response"})
MOVES: list[BindingType] = [
    act("n", "sample(1)", "samples.next", "Next sample", show=True),
    act("p", "sample(-1)", "samples.previous", "Previous sample"),
    act("N", "step(1)", "samples.older", "Older step", show=True),
    act("P", "step(-1)", "samples.newer", "Newer step"),
    act("b", "extreme(True)", "samples.best", "Best sample", show=True),
    act("w", "extreme(False)", "samples.worst", "Worst sample"),
    act("v", "kind", "samples.kind", "Training or validation"),
    act("f", "follow", "samples.follow", "Follow", show=True),
]
"""Keys that lead from one sample to others, in the panel as on the screen."""


class SampleMoves:
    """What these keys do."""

    @property
    @abstractmethod
    def browse(self) -> Browse:
        """The sample that is shown, and the others."""

    @abstractmethod
    def moved(self, moved: bool) -> None:
        """Show the sample from its beginning if it is another one."""

    def clip(self) -> str:
        """Return the sample as it is copied."""
        sample = self.browse.sample
        return whole(sample) if sample is not None else ""

    def action_sample(self, by: int) -> None:
        """Show the next or previous sample; past the last comes the older step, before the first
        the newer one.
        """
        self.moved(self.browse.to_sample(by))

    def action_step(self, by: int) -> None:
        """Show the same place of the older (1) or newer (-1) step: in validations that is the same
        prompt.
        """
        self.moved(self.browse.to_step(by))

    def action_extreme(self, best: bool) -> None:
        """Show the best or worst of the samples listed; again, the next one that scored the
        same.
        """
        self.moved(self.browse.to_extreme(best=best))

    def action_kind(self) -> None:
        """Show the nearest validation, or the nearest training step."""
        self.moved(self.browse.to_kind())

    def action_follow(self) -> None:
        """Follow the newest step, or stay at this one."""
        self.moved(self.browse.follow())


class SamplesPanel(SampleMoves, Panel):
    """One sample, of the newest step until the user moves to others."""

    TITLE = "samples"
    ABRIDGED = True
    PANEL = PanelSpec("samples", "f6", "Samples", rank=50, tab=30, share=0.25)
    FOOTER = (
        ("samples.previous samples.next", "Sample"),
        ("samples.older samples.newer", "Step"),
        ("samples.best samples.worst", "Best, worst"),
        ("samples.unfold", "Unfold"),
        ("samples.follow", "Follow"),
    )
    DEFAULT_CSS = """
    SamplesPanel {
        & > DocumentRows { height: 1fr; scrollbar-gutter: stable; }
    }
    """
    HELP_SECTION = HelpSection("samples, with the focus", rank=30, task=SAMPLES)
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        act("u", "unfold", "samples.unfold", "Unfold", show=True),
        act("enter", "open", "samples.enter", "All samples"),
    ]

    class Opened(Message):
        """The user opened the list of all samples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._header = Line()
        self._body = DocumentRows(unfold=self._read_on)
        self._view: View | None = None
        self._browses: dict[str, Browse] = {}
        """By run: each is shown as it was left."""
        self._unfolded: object = None
        """True while all samples are unfolded; a sample that was unfolded by scrolling, alone."""
        self._drawn: tuple[Place, int] | None = None
        """The sample that was drawn last."""
        self._wanted: int | None = None
        """Step to go to in the next drawing."""
        self._needed: LastResult[int] = LastResult()
        self._tallest: dict[tuple[str, int], int] = {}
        """The most rows that a sample has taken, by run and width."""

    def compose(self) -> ComposeResult:
        """Make the header, which stays while the sample scrolls, and the sample."""
        yield self._header
        yield self._body

    def on_mount(self) -> None:
        """Stop following once the user scrolls: a newer sample must not replace this one."""
        self.watch(self._body, "scroll_y", self._scrolled, init=False)

    def has_content(self, view: View) -> bool:
        """Return True if the shown run has samples."""
        return view.run is not None and bool(view.run.samples.places)

    def needed(self, view: View, width: int, height: int) -> int:
        """Return the rows of the longest sample that was shown of the run, as far as they are worth
        their room: charts must not jump with each step. One on a low screen, and where the run has
        no sample.
        """
        run = view.run
        if run is None or not self.has_content(view):
            return 1
        alone = is_evaluation(run)  # then no chart wants the room
        if not alone and not self.screen.size.height >= TALL:
            return 1
        self._view = view
        self._settle()
        most = height if alone else _MOST
        place = (run.name, width)

        def rows() -> int:
            assert sample is not None
            document = Document(
                sample, width - 1, most - 1, folded=_FOLDED, unfolds=self._unfolds
            )
            document.grow(most)
            return min(most, len(document) + 1)

        sample = self.browse.sample
        if sample is not None:
            needed = self._needed.of((sample, place, most), rows)
            self._tallest[place] = max(needed, self._tallest.get(place, 0))
        return self._tallest.get(place, _LEAST)

    @property
    def _unfolds(self) -> str:
        """The key that unfolds a sample."""
        return self._view.keys["samples.unfold"] if self._view is not None else ""

    def show(self, view: View) -> None:
        """Draw the chosen sample of the shown run."""
        self._view = view
        self._draw()

    def on_resize(self) -> None:
        """Wrap the sample for the new width."""
        self._draw()

    def go_to(self, step: int) -> None:
        """Show the samples of the nearest step that has some, once a run is shown."""
        self._wanted = step
        self.moved(moved=True)

    @property
    def browse(self) -> Browse:
        """Which sample of the shown run is shown."""
        run = self._view.run if self._view is not None else None
        return self._browses.setdefault(run.name if run is not None else "", Browse())

    @property
    def shown(self) -> tuple[Place, int] | None:
        """Place and index of the sample shown, None where there is none."""
        return self.browse.shown

    # -- drawing -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Find the sample for what the user has chosen of the shown run."""
        view = self._view
        if view is None or view.run is None:
            return
        samples = view.run.samples
        step, self._wanted = self._wanted, None
        nearest = samples.nearest_place(step) if step is not None else None
        if nearest is not None:
            self.browse.go_to(nearest)
        self.browse.settle(samples, view.browser, view.run.end)

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        self._settle()
        width, height = self.content_size
        if not self._body.is_mounted or width < 2 or height < 1:
            return
        short = (
            height == 1 and self.has_class("-bare") and not self.has_class("-zoomed")
        )
        headed = self.shown is not None and height > 1
        self._header.display = headed
        if headed:
            self._draw_header(width)
        # The scrollbar comes and goes, the text stays where it is.
        self._draw_body(view, width - 1, height - headed, short=short)
        if self.shown != self._drawn:
            self._drawn = self.shown
            self._body.scroll_home(animate=False, immediate=True)
        self._caption()

    def _draw_body(self, view: View, width: int, height: int, *, short: bool) -> None:
        browse = self.browse
        sample = browse.sample
        if browse.page is None:
            self._body.show_rows(why_none(view, width, short=short))
        elif sample is None:
            self._body.show_rows([[(browse.page.problem or "reading …", "dim")]])
        elif short:
            row = short_row(browse, sample, browse.page.place, width)
            self._body.show_rows([row])
        else:
            folded = frozenset() if self._whole else _FOLDED
            self._body.show(sample, width, height, folded=folded, unfolds=self._unfolds)

    def _draw_header(self, width: int) -> None:
        browse = self.browse
        place, index = browse.shown or (None, 0)
        if place is None:
            return
        left = [(f"step {exact_step(place.step)} · ", "strong"), *sample_words(browse)]
        left += [(" · validation", "accent")] if place.validation else []
        scores = browse.listing.scores
        if len(scores.scores) > 1:
            left.append((f" · step mean {compact(scores.mean)}", "dim"))
        # step, sample and score are never left out for the others' scores
        room = min(width // 3, width - 1 - cells_of(left[:3]))
        among = range(len(browse.listing.facts))
        self._header.show(left, strip(browse.listing, index, among, room))

    @property
    def _whole(self) -> bool:
        """True while the shown sample is unfolded."""
        shown = self.shown
        return self._unfolded is True or (shown is not None and shown == self._unfolded)

    def _caption(self) -> None:
        view = self._view
        shown = self.shown
        if view is None or view.run is None or shown is None:
            self.subtitle("")
            return
        following = self.browse.chosen.follow
        samples = view.run.samples
        self.subtitle(caption(shown[0], samples, view.keys, following=following))

    # -- keys --------------------------------------------------------------------------------------

    def moved(self, moved: bool) -> None:
        """Show the sample from its beginning if it is another one."""
        if moved:
            self._draw()
            self._body.scroll_home(animate=False, immediate=True)

    def _scrolled(self, y: float) -> None:
        if y > 0 and self.browse.stay():
            self._caption()

    def _read_on(self) -> bool:
        """Unfold the shown sample for who scrolls beyond its folded rows, and keep it; return False
        if nothing of it is folded.
        """
        document = self._body.document
        if document is None or self._whole or not document.hides:
            return False
        self._unfolded = self.shown
        self.browse.stay()
        self.moved(moved=True)
        return True

    def action_unfold(self) -> None:
        """Show the whole sample, or only its ends."""
        self._unfolded = not self._whole
        self.moved(moved=True)

    def action_open(self) -> None:
        """Show all samples of the step over the full screen."""
        self.post_message(self.Opened())
