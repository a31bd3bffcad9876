"""The first line of the screen: the shown run and the state of its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.one_row import one_row
from verl_tui.rendering.session.source_status import looking
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import middle
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece

_BRANDED = 100
"""Width from which on there is room for more than the run, in cells."""
_ROOMY = 70
"""Width from which on there is room for a few words on what does not work, in cells."""


def status(
    view: View, width: int, *, alone: bool = False
) -> tuple[list[Piece], list[Piece]]:
    """Return the first line of the screen: the shown run at a glance.

    Args:
        view: The state of the app.
        width: Cells of the line.
        alone: True if nothing else is in sight.
    """
    right = [*_troubles(view, width), *_replay_pieces(view, width)]
    left: list[Piece] = []
    if width >= _BRANDED and not alone:
        left.append(("verl-tui ", "dim"))
        right.append((f" {view.keys['help']} help", "dim"))
    room = width - cells_of((*left, *right)) - (1 if right else 0)
    if view.run is not None:
        left += one_row(view, room, alone=alone)
    else:
        left.append(_no_run(view, room, alone=alone))
    if view.run is None and view.paused:
        right.append((f" PAUSED, {view.keys['pause']} goes on ", "warning"))
    return left, right


def _no_run(view: View, room: int, *, alone: bool) -> Piece:
    """Say that there is no run, and why where nothing else in sight does."""
    if alone and view.monitor.sentences:
        sentence = one_line("; ".join(view.monitor.sentences), 400)
        return middle(sentence, max(8, room)), "warning"
    return looking(view) if view.loading else "no run yet", "dim"


def _troubles(view: View, width: int) -> Iterator[Piece]:
    for trouble in view.troubles:
        words = trouble.long if width >= _ROOMY else trouble.short
        yield f" {words}", "dim" if trouble.over else "warning"


def _replay_pieces(view: View, width: int) -> Iterator[Piece]:
    if view.replay is not None:
        yield (
            f" {view.replay.words(width)} ",
            "warning" if view.replay.paused else "accent",
        )
