"""The samples of a run, one at a time: what the model was asked, what it said, and what it got for it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import Binding
from textual.strip import Strip

from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.panels.sample_rows import HERE, ROLES, body_rows, empty_rows, header_height, header_rows
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.runs.samples import Samples
    from verl_tui.tui.panels.sample_rows import Row
    from verl_tui.tui.view import View


@dataclass(slots=True)
class _Place:
    """Where the user is in the samples of one run."""

    step: int = 0
    index: int = 0
    follow: bool = True


class SamplesPanel(Panel):
    """One sample, the newest step's first until the user moves; keys lead to its neighbours and to other steps."""

    TITLE = "samples"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"samples--{role}" for role in (*ROLES, *HERE)}
    DEFAULT_CSS = """
    SamplesPanel {
        & > .-header { height: 1; overflow: hidden hidden; scrollbar-size: 0 0; }
        & > .-body { height: 1fr; scrollbar-gutter: stable; }
        & > .samples--strong { color: $foreground; text-style: bold; }
        & > .samples--label { color: $text-accent; }
        & > .samples--dim { color: $text-muted; }
        & > .samples--prompt { color: $text-muted; }
        & > .samples--response { color: $foreground; }
        & > .samples--truth { color: $text-primary; }
        & > .samples--extras { color: $text-muted; }
        & > .samples--good { color: $text-success; }
        & > .samples--warning { color: $text-warning; }
        & > .samples--critical { color: $text-error; }
        & > .samples--even { color: $text-muted; }
        & > .samples--here-good { color: $text-success; text-style: bold reverse; }
        & > .samples--here-warning { color: $text-warning; text-style: bold reverse; }
        & > .samples--here-critical { color: $text-error; text-style: bold reverse; }
        & > .samples--here-even { color: $text-muted; text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "sample(1)", "Next sample", id="samples.next"),
        Binding("p", "sample(-1)", "Previous sample", show=False, id="samples.previous"),
        Binding("N", "step(1)", "Older step", id="samples.older"),
        Binding("P", "step(-1)", "Newer step", show=False, id="samples.newer"),
        Binding("b", "extreme('best')", "Best sample", id="samples.best"),
        Binding("w", "extreme('worst')", "Worst sample", show=False, id="samples.worst"),
        Binding("f", "follow", "Follow", id="samples.follow"),
        Binding("u,enter", "unfold", "Unfold the prompt", id="samples.unfold"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._header = Rows()
        self._header.add_class("-header")
        self._header.can_focus = False
        self._body = Rows()
        self._body.add_class("-body")
        self._view: View | None = None
        self._places: dict[str, _Place] = {}
        self._unfolded = False
        self._wanted: int | None = None
        """Step to go to, until there is something to go to it in."""
        self._styles_by_role: dict[str, Style] = {}
        self._drawn_header: object = None
        self._drawn_body: object = None

    def compose(self) -> ComposeResult:
        """The header stays while the sample scrolls."""
        yield self._header
        yield self._body

    def on_mount(self) -> None:
        """Who scrolls reads, and must not lose the sample to a newer one."""
        self.watch(self._body, "scroll_y", self._scrolled, init=False)

    def show(self, view: View) -> None:
        """Draw the chosen sample of the shown run."""
        self._view = view
        self._draw()

    def on_resize(self) -> None:
        """Wrap anew."""
        self._draw()

    def notify_style_update(self) -> None:
        """Take the colours of another theme."""
        super().notify_style_update()
        self._styles_by_role = {}
        self.call_later(self._draw)

    def go_to(self, step: int) -> None:
        """Show the samples of the nearest step that has some, from now on or from the next drawing."""
        self._wanted = step
        self._draw()

    @property
    def shown(self) -> tuple[int, int] | None:
        """Step and index of the sample shown, None where there is none."""
        samples = self._samples
        if samples is None:
            return None
        place = self._place
        step = None if place.follow else samples.nearest(place.step)
        if step is None:
            return samples.steps[-1], 0
        return step, min(place.index, len(samples.at(step)) - 1)

    @property
    def following(self) -> bool:
        """Whether the newest step is shown as it comes."""
        return self._place.follow

    # -- drawing --------------------------------------------------------------------------------------------------

    @property
    def _samples(self) -> Samples | None:
        run = self._view.run if self._view is not None else None
        return run.samples if run is not None and run.samples.steps else None

    @property
    def _place(self) -> _Place:
        run = self._view.run if self._view is not None else None
        return self._places.setdefault(run.name, _Place()) if run is not None else _Place()

    def _draw(self) -> None:
        view = self._view
        width, height = self.content_size
        if view is None or not self._body.is_mounted or width < 2 or height < 1:
            return
        if self._wanted is not None:
            step, self._wanted = self._wanted, None
            if self._samples is not None:
                self._pin(step, 0)
                return
        if not self._styles_by_role:
            self._styles_by_role = {r: self.get_component_rich_style(f"samples--{r}") for r in (*ROLES, *HERE)}
        self._draw_header(view, width, height)
        self._draw_body(view, width - 1, height)  # the scrollbar comes and goes, the text stays where it is
        self._caption()

    def _draw_header(self, view: View, width: int, height: int) -> None:
        samples, shown, run = self._samples, self.shown, view.run
        rows = header_height(width, height) if shown is not None else 0
        revision = run.samples.revision if run is not None else 0
        key = (run and run.name, revision, shown, width, rows, view.ascii, tuple(self._styles_by_role.values()))
        if key == self._drawn_header:
            return
        self._drawn_header = key
        self._header.display = rows > 0
        self._header.styles.height = max(1, rows)
        if samples is not None and shown is not None:
            step, index = shown
            self._header.set_strips(
                self._strips(header_rows(step, samples.at(step), index, width, rows, ascii=view.ascii))
            )

    def _draw_body(self, view: View, width: int, height: int) -> None:
        samples, shown = self._samples, self.shown
        look = (width, height, self._unfolded, view.ascii, tuple(self._styles_by_role.values()))
        if samples is None or shown is None:
            rows = empty_rows(view.run, width, loading=view.loading)
            key: object = (rows, look)
            if key != self._drawn_body:
                self._body.set_strips(self._strips(rows))
        else:
            step, index = shown
            sample = samples.at(step)[index]
            key = (sample, look)
            if key != self._drawn_body:
                seen = height - header_height(width + 1, height)
                rows = body_rows(sample, width, seen, unfolded=self._unfolded, ascii=view.ascii)
                self._body.set_strips(self._strips(rows))
        self._drawn_body = key

    def _strips(self, rows: Sequence[Row]) -> list[Strip]:
        styles = self._styles_by_role
        return [Strip([Segment(text, styles.get(role)) for text, role in row if text]) for row in rows]

    def _caption(self) -> None:
        samples, shown = self._samples, self.shown
        if samples is None or shown is None:
            self.subtitle("")
            return
        words = ["following"]
        if not self.following:
            words = [f"step {samples.steps.index(shown[0]) + 1} of {len(samples.steps)}", "f follows"]
        if samples.dropped:
            words.insert(0, f"{samples.dropped:,} older ones dropped")
        self.subtitle(" · ".join(words))

    # -- keys -----------------------------------------------------------------------------------------------------

    def _pin(self, step: int, index: int) -> None:
        """Stay at a sample."""
        place = self._place
        place.step, place.index, place.follow = step, index, False
        self._turn()

    def _turn(self) -> None:
        """Show what has been chosen from its beginning."""
        self._draw()
        self._body.scroll_home(animate=False, immediate=True)

    def _scrolled(self, y: float) -> None:
        shown = self.shown
        if y > 0 and shown is not None and self.following:
            place = self._place
            place.step, place.index, place.follow = *shown, False
            self._caption()

    def action_sample(self, by: int) -> None:
        """Show the next or previous sample; past the last comes the older step, before the first the newer one."""
        samples, shown = self._samples, self.shown
        if samples is None or shown is None:
            return
        step, index = shown
        if 0 <= index + by < len(samples.at(step)):
            self._pin(step, index + by)
            return
        beyond = self._neighbour(samples, step, by)
        if beyond is not None:
            self._pin(beyond, 0 if by > 0 else len(samples.at(beyond)) - 1)

    def action_step(self, by: int) -> None:
        """Show the same place of the older (1) or newer (-1) step: in validations that is the same prompt."""
        samples, shown = self._samples, self.shown
        if samples is None or shown is None:
            return
        beyond = self._neighbour(samples, shown[0], by)
        if beyond is not None:
            self._pin(beyond, min(shown[1], len(samples.at(beyond)) - 1))

    @staticmethod
    def _neighbour(samples: Samples, step: int, by: int) -> int | None:
        at = bisect_left(samples.steps, step) - by
        return samples.steps[at] if 0 <= at < len(samples.steps) else None

    def action_extreme(self, which: str) -> None:
        """Show the best or worst sample of the step; again, the next one that scored the same."""
        samples, shown = self._samples, self.shown
        if samples is None or shown is None:
            return
        step, index = shown
        scores = {i: s.score for i, s in enumerate(samples.at(step)) if s.score is not None and isfinite(s.score)}
        if not scores:
            return
        top = max(scores.values()) if which == "best" else min(scores.values())
        same = [i for i, score in scores.items() if score == top]
        self._pin(step, next((i for i in same if i > index), same[0]))

    def action_follow(self) -> None:
        """Show the newest step as it comes, or stay where we are."""
        shown = self.shown
        if shown is None:
            return
        if self.following:
            self._pin(*shown)
        else:
            self._place.follow = True
            self._turn()

    def action_unfold(self) -> None:
        """Show the whole prompt, or only its end."""
        self._unfolded = not self._unfolded
        self._turn()
