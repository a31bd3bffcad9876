"""How panels share a screen: the rows that each gets, and the one that fills it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.css.scalar import Scalar, Unit
from textual.layouts.vertical import VerticalLayout

from verl_tui.rendering.dashboard_rows import PanelNeeds, divided
from verl_tui.tui.panels.catalog import PANELS
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.hint import Hint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.screen import Screen

    from verl_tui.rendering.dashboard_rows import Division
    from verl_tui.rendering.session.snapshot import View

_FEW = 2
"""Rows in which a panel is hardly in sight, unless that is all it has to show."""
_LEFT = Scalar(1, Unit.FRACTION, Unit.HEIGHT)
_WHOLE = Scalar(100, Unit.WIDTH, Unit.WIDTH)
"""Height and most width of a panel that fills the screen: the room that the lines around leave, and
all of it.
"""


class PanelArrangement:
    """Arranges the panels of a screen to suit what they have to show.

    Which of them are in sight is the stylesheet's to say, by the classes that are set here. It is
    applied to the panels themselves only: what is in them looks the same.
    """

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._needs = PanelNeeds()
        self._division: Division | None = None
        """How the rows are divided now, None before the first layout."""

    @property
    def panels(self) -> list[Panel]:
        """The panels, without a search through all that is in them."""
        return [child for child in self._screen.children if isinstance(child, Panel)]

    @property
    def zoomed(self) -> Panel | None:
        """The panel that fills the screen, None where several share it."""
        zoomed = (panel for panel in self.panels if panel.has_class("-zoomed"))
        return next(zoomed, None)

    def is_in_sight(self, panel: Panel) -> bool:
        """Return whether a panel shows enough of itself."""
        shown = panel.size.height if panel.display else 0
        needed = self._needs.most(panel.id or "")
        whole = not panel.ABRIDGED and needed is not None and needed <= shown
        return shown > _FEW or whole

    def set_class(self, name: str, *, on: bool) -> None:
        """Add or remove a class of the screen that changes how panels are arranged."""
        self._screen.set_class(on, name, update=False)
        for node in (self._screen, *self._screen.children):
            self._screen.app.stylesheet.apply(node)

    # -- rows for all ------------------------------------------------------------------------------

    def suit(self, view: View) -> bool:
        """Arrange the panels to suit what there is to show; return whether they were not yet, and
        have to be drawn after the layout.

        Where nothing is known of GPUs, or there are no samples, little or no room is given to
        saying so.
        """
        changed = False
        for panel in self.panels:
            name = f"-{panel.id}"
            known = self._screen.has_class(name)
            filled = panel.attempt(panel.has_content, view, otherwise=known)
            if filled != known:
                self.set_class(name, on=filled)
                changed = True
            changed |= panel.attempt(panel.make_room, view, otherwise=False)
        changed |= self.divide(view)
        return changed

    def divide(self, view: View) -> bool:
        """Give each panel the rows that it needs; return whether any has got others."""
        screen = self._screen
        width, rows = screen.size
        rows -= 1
        for child in screen.children:
            if isinstance(child, Keys | Hint) and child.display:
                rows -= 1
        inner = max(1, width - 2)
        needs: dict[str, int] = {}
        for panel in filter(_is_displayed, self.panels):
            need = _needed(panel, view, inner, rows)
            if need:
                needs[panel.id or ""] = need
        run = view.run.name if view.run is not None else ""
        needs = self._needs.grow((run, screen.size), needs)
        frames = not screen.has_class("-narrow")
        division = divided(needs, width - 2, rows, frames=frames)
        if division == self._division:
            return False
        self._division = division
        self._apply(division)
        return True

    def let_shrink(self, name: str) -> None:
        """Let a panel get fewer rows than before the next time."""
        self._needs.forget(name)

    def _apply(self, division: Division) -> None:
        screen = self._screen
        if division.column is not screen.has_class("-column"):
            self.set_class("-column", on=division.column)
        for panel in self.panels:
            rows = division.given.get(panel.id or "")
            bare = rows is not None and not rows.framed
            if bare is not panel.has_class("-bare"):
                panel.set_class(bare, "-bare", update=False)
                screen.app.stylesheet.apply(panel)
        screen.styles.set_rule("grid_rows", tuple(_heights(division)))
        screen.refresh(layout=True, repaint=False)

    # -- the screen for one ------------------------------------------------------------------------

    def zoom(self, panel: Panel | None) -> bool:
        """Let a panel fill the screen, or give all their room back; return whether that is new.

        The widgets' own styles override the stylesheet: to apply that to every panel takes longer
        than the answer to a key may.
        """
        screen = self._screen
        front = panel or self.zoomed
        if panel is self.zoomed or front is None:
            return False
        screen.set_class(panel is not None, "-zoomed", update=False)
        # Rules are set, not properties: a property would repaint its widget, the layout's all.
        screen.styles.set_rule("layout", None if panel is None else VerticalLayout())
        for other in self.panels:
            _fill_screen(other, fills=other is panel)
            if other is not front:
                other.styles.set_rule("display", None if panel is None else "none")
        self._bring_forward(front, forward=panel is not None)
        screen.refresh(layout=True, repaint=False)
        if screen.has_class("-line"):
            screen.app.stylesheet.apply(screen.query_one("#status"))
        return True

    def _bring_forward(self, front: Panel, *, forward: bool) -> None:
        """Display a panel where it is to fill the screen, or leave that to the stylesheet again."""
        # By its property: Textual looks anew which panels are displayed.
        front.styles.display = "block" if forward else None
        if front.has_class("-bare"):  # only the full screen gives it a frame
            self._screen.app.stylesheet.apply(front)


def _needed(panel: Panel, view: View, width: int, height: int) -> int:
    """Return the rows that a panel needs; of one that fails one for the sentence, and no less than
    it needed before.
    """
    otherwise = 0 if isinstance(panel, ChartsPanel) else 1
    return panel.attempt(panel.needed, view, width, height, otherwise=otherwise)


def _is_displayed(panel: Panel) -> bool:
    """Return whether the stylesheet displays a panel where none fills the screen."""
    return bool(panel.styles.base.display != "none")


def _heights(division: Division) -> Iterator[Scalar]:
    """Yield the heights of the rows of the grid, from the top."""
    for spec in PANELS:
        given = division.given.get(spec.name)
        if spec.name == "charts":
            yield _LEFT
        elif given is not None:
            yield Scalar(given.height, Unit.CELLS, Unit.HEIGHT)


def _fill_screen(panel: Panel, *, fills: bool) -> None:
    """Give a panel the size of the whole screen, or the one that the stylesheet says."""
    panel.set_class(fills, "-zoomed", update=False)
    panel.styles.set_rule("height", _LEFT if fills else None)
    panel.styles.set_rule("max_width", _WHOLE if fills else None)
