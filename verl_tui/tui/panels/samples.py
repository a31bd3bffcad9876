"""The samples of the shown run, one at a time: prompt, response and score."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.message import Message

from verl_tui.rendering.arrange import TALL
from verl_tui.rendering.samples.body import body_rows
from verl_tui.rendering.samples.chosen import SampleChoice
from verl_tui.rendering.samples.export import whole
from verl_tui.rendering.samples.of_runs import FOLLOWING, ChoicesByRun, TallestSamples
from verl_tui.rendering.samples.panel_rows import (
    caption,
    header_height,
    header_rows,
    rows_instead,
)
from verl_tui.rendering.samples.position import SamplePosition
from verl_tui.rendering.samples.short_row import short_row
from verl_tui.runs.views.state import is_evaluation
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import SAMPLES
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.spec import PanelSpec
from verl_tui.tui.widgets import looks
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.unfolding_rows import UnfoldingRows

if TYPE_CHECKING:
    from rich.style import Style
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.records import Sample
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place, Samples
    from verl_tui.tui.widgets.role_styled import Looks


_MOST, _LEAST = 12, 3
"""Most rows that a sample asks for, and those kept for one that is not read yet."""


class SamplesPanel(Panel, RoleStyled):
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
    LOOKS: ClassVar[Looks] = {
        **looks.SAMPLES,
        "label": "$text-accent",
        "prompt": "$text-muted",
        "extras": "$text-muted",
        "here-good": "bold reverse $text-success",
        "here-warning": "bold reverse $text-warning",
        "here-critical": "bold reverse $text-error",
        "here-even": "bold reverse $text-muted",
    }
    DEFAULT_CSS = """
    SamplesPanel {
        & > .-header { height: 1; overflow: hidden hidden; scrollbar-size: 0 0; }
        & > .-body { height: 1fr; scrollbar-gutter: stable; }
    }
    """
    HELP_SECTION = HelpSection("samples, with the focus", rank=30, task=SAMPLES)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "sample(1)", "Next sample", id="samples.next"),
        Binding(
            "p", "sample(-1)", "Previous sample", show=False, id="samples.previous"
        ),
        Binding("N", "step(1)", "Older step", id="samples.older"),
        Binding("P", "step(-1)", "Newer step", show=False, id="samples.newer"),
        Binding("b", "extreme('best')", "Best sample", id="samples.best"),
        Binding(
            "w", "extreme('worst')", "Worst sample", show=False, id="samples.worst"
        ),
        Binding("v", "kind", "Training or validation", show=False, id="samples.kind"),
        Binding("f", "follow", "Follow", id="samples.follow"),
        Binding("u", "unfold", "Unfold", id="samples.unfold"),
        Binding("enter", "open", "All samples", show=False, id="samples.enter"),
    ]

    class Opened(Message):
        """The user opened the list of all samples."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._header = Rows()
        self._header.add_class("-header")
        self._header.can_focus = False
        self._body = UnfoldingRows(self._read_on)
        self._body.add_class("-body")
        self._view: View | None = None
        self._position = SamplePosition(FOLLOWING)
        self._choices = ChoicesByRun()
        self._unfolded = False
        """True while all samples are unfolded."""
        self._read: tuple[Place, int] | None = None
        """The sample that was unfolded by scrolling, alone."""
        self._wanted: int | None = None
        """Step to go to in the next drawing."""
        self._tallest = TallestSamples()
        self._drawn_header: object = None
        self._drawn_body: object = None

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
        sample = self._position.sample
        most = height if alone else _MOST
        if sample is not None:
            rows_of = partial(self._rows_needed, sample, view, width, most)
            self._tallest.grow(run.name, width, sample, rows_of)
        return self._tallest.most(run.name, width, otherwise=_LEAST)

    def _rows_needed(self, sample: Sample, view: View, width: int, most: int) -> int:
        """Return how many rows a folded sample and its header take, at most so many."""
        rows = len(self._sample_rows(sample, view, width - 1, most, unfolded=False))
        return min(most, rows + header_height(width, rows + 2))

    def show(self, view: View) -> None:
        """Draw the chosen sample of the shown run."""
        self._view = view
        self._draw()

    def on_resize(self) -> None:
        """Wrap the sample for the new width."""
        self._draw()

    def notify_style_update(self) -> None:
        """Take the colours of another theme."""
        super().notify_style_update()
        self.call_later(self._draw)

    def go_to(self, step: int) -> None:
        """Show the samples of the nearest step that has some, once a run is shown."""
        self._wanted = step
        self._show_from_top(moved=True)

    @property
    def shown(self) -> tuple[Place, int] | None:
        """Place and index of the sample shown, None where there is none."""
        return self._position.shown

    @property
    def chosen(self) -> SampleChoice:
        """The user's choice, with the sample that is shown for it."""
        return self._position.leaving

    @property
    def following(self) -> bool:
        """True while the newest step is followed."""
        return self._position.chosen.follow

    def clip(self) -> str:
        """Return the sample as it is copied."""
        sample = self._position.sample
        return whole(sample) if sample is not None else ""

    def go_on(self, chosen: SampleChoice | None) -> None:
        """Show the sample that was shown last on the samples screen."""
        if chosen is not None:
            self._position.chosen = chosen
            self._show_from_top(moved=True)

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def _samples(self) -> Samples | None:
        run = self._view.run if self._view is not None else None
        return run.samples if run is not None else None

    def _settle(self) -> None:
        """Find the sample for what the user has chosen of the shown run."""
        view = self._view
        if view is None:
            return
        position = self._position
        name = view.run.name if view.run is not None else ""
        position.chosen = self._choices.turn_to(name, position.chosen)
        samples = self._samples
        step = self._wanted
        self._wanted = None
        if samples is not None and step is not None:
            nearest = samples.nearest_place(step)
            if nearest is not None:
                position.chosen = SampleChoice(nearest)
        position.settle(
            samples, view.browser, view.run.end if view.run is not None else None
        )

    # -- drawing -----------------------------------------------------------------------------------

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        self._settle()
        width, height = self.content_size
        if not self._body.is_mounted or width < 2 or height < 1:
            return
        self._draw_header(view, width, height)
        # The scrollbar comes and goes, the text stays where it is.
        self._draw_body(view, width - 1, height)
        self._caption()

    def _draw_header(self, view: View, width: int, height: int) -> None:
        shown = self.shown
        page = self._position.page
        listing = self._position.listing
        rows = header_height(width, height) if shown is not None else 0
        count = page.count if page is not None else 0
        key = (shown, count, listing.revision, width, rows, self._look)
        if key == self._drawn_header:
            return
        self._drawn_header = key
        self._header.display = rows > 0
        self._header.styles.height = max(1, rows)
        if shown is not None:
            drawn = header_rows(*shown, listing, width, rows, count=count)
            self._header.set_strips([self.inked(row) for row in drawn])

    def _draw_body(self, view: View, width: int, height: int) -> None:
        sample = self._position.sample
        page = self._position.page
        short = self._short
        instead = rows_instead(view, page, width, short=short) if sample is None else []
        listed = self._position.listing.revision if short else 0
        key = (sample or instead, listed, width, height, self._whole, self._look)
        if key == self._drawn_body:
            return
        self._drawn_body = key
        rows = instead
        if sample is not None and short and self.shown is not None:
            listing = self._position.listing
            rows = [short_row(*self.shown, listing, sample, width)]
        elif sample is not None:
            rows = self._sample_rows(sample, view, width, height, unfolded=self._whole)
        self._body.set_strips([self.inked(row) for row in rows])

    @property
    def _short(self) -> bool:
        """True while there is one row for all."""
        bare = self.has_class("-bare") and not self.has_class("-zoomed")
        return bare and self.content_size.height == 1

    @property
    def _whole(self) -> bool:
        """True while the shown sample is unfolded."""
        return self._unfolded or (self.shown is not None and self.shown == self._read)

    def _sample_rows(
        self, sample: Sample, view: View, width: int, height: int, *, unfolded: bool
    ) -> list[Pieces]:
        """Return the rows of a sample in a panel of `height` rows."""
        return body_rows(
            sample,
            width,
            height - header_height(width + 1, height),
            unfolded=unfolded,
            key=view.keys["samples.unfold"],
        )

    @property
    def _look(self) -> tuple[Style, ...]:
        """The colours in use: a change of any has everything drawn again."""
        return tuple(self.role_styles.values())

    def _caption(self) -> None:
        view = self._view
        samples = self._samples
        shown = self.shown
        if view is None or samples is None or shown is None:
            self.subtitle("")
        else:
            self.subtitle(
                caption(shown[0], samples, view.keys, following=self.following)
            )

    # -- keys --------------------------------------------------------------------------------------

    def _show_from_top(self, moved: bool) -> None:
        if moved:
            self._draw()
            self._body.scroll_home(animate=False, immediate=True)

    def _scrolled(self, y: float) -> None:
        if y > 0 and self._position.stay():
            self._caption()

    def action_sample(self, by: int) -> None:
        """Show the next or previous sample; past the last comes the older step, before the first
        the newer one.
        """
        self._show_from_top(self._position.to_sample(by))

    def action_step(self, by: int) -> None:
        """Show the same place of the older (1) or newer (-1) step: in validations that is the same
        prompt.
        """
        self._show_from_top(self._position.to_step(by))

    def action_extreme(self, which: str) -> None:
        """Show the best or worst sample of the step; again, the next one that scored the same."""
        self._show_from_top(self._position.to_extreme(best=which == "best"))

    def action_kind(self) -> None:
        """Show the nearest validation, or the nearest training step."""
        with suppress(LookupError):
            self._show_from_top(self._position.to_kind())

    def action_follow(self) -> None:
        """Follow the newest step, or stay at this one."""
        self._show_from_top(self._position.follow())

    def _read_on(self) -> bool:
        """Unfold the shown sample for who scrolls beyond its folded rows, and keep it; return False
        if nothing of it is folded.
        """
        view = self._view
        sample = self._position.sample
        if view is None or sample is None or self._whole:
            return False
        width, height = self.content_size
        folded, whole = (
            self._sample_rows(sample, view, width - 1, height, unfolded=unfolded)
            for unfolded in (False, True)
        )
        if folded == whole:
            return False
        self._read = self.shown
        self._position.stay()
        self._show_from_top(moved=True)
        return True

    def action_unfold(self) -> None:
        """Show the whole sample, or only its ends."""
        self._unfolded = not self._whole
        self._read = None
        self._show_from_top(moved=True)

    def action_open(self) -> None:
        """Show all samples of the step over the full screen."""
        self.post_message(self.Opened())
