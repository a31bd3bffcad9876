"""Keys that lead from one sample to others, in the panel as on the screen."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from verl_tui.tui.keys.act import act

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.rendering.samples.browse import Browse

MOVES: list[BindingType] = [
    act("n", "sample(1)", "samples.next", "Next sample", show=True),
    act("p", "sample(-1)", "samples.previous", "Previous sample"),
    act("N", "step(1)", "samples.older", "Older step", show=True),
    act("P", "step(-1)", "samples.newer", "Newer step"),
    act("b", "extreme('best')", "samples.best", "Best sample", show=True),
    act("w", "extreme('worst')", "samples.worst", "Worst sample"),
    act("v", "kind", "samples.kind", "Training or validation"),
    act("f", "follow", "samples.follow", "Follow", show=True),
]


class SampleMoves:
    """What these keys do."""

    @property
    @abstractmethod
    def browse(self) -> Browse:
        """The sample that is shown, and the others."""

    @abstractmethod
    def moved(self, moved: bool) -> None:
        """Show the sample from its beginning if it is another one."""

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

    def action_extreme(self, which: str) -> None:
        """Show the best or worst of the samples listed; again, the next one that scored the
        same.
        """
        self.moved(self.browse.to_extreme(best=which == "best"))

    def action_kind(self) -> None:
        """Show the nearest validation, or the nearest training step."""
        self.moved(self.browse.to_kind())

    def action_follow(self) -> None:
        """Follow the newest step, or stay at this one."""
        self.moved(self.browse.follow())
