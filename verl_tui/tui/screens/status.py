"""The first line of the screen: the shown run at a glance, and what is the matter with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.runs.state import remaining, silence, state
from verl_tui.text import one_line
from verl_tui.times import age, duration
from verl_tui.tui.screens.glance import STATE_ROLES, glance
from verl_tui.tui.why import standing
from verl_tui.tui.widgets.words import middle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.line import Piece

_BRANDED = 60
"""Columns from which on the first line has room for more than the run."""
_ROOMY = 100
"""Columns from which on there is room for both a replay and the sources."""


def status(view: View, width: int, *, alone: bool = False) -> tuple[list[Piece], list[Piece]]:
    """Return the first line of the screen: the shown run at a glance.

    Args:
        view: What there is.
        width: Cells there are.
        alone: Whether the line is all there is to see.
    """
    right = list(_replay_pieces(view, width))
    if view.run is not None and (alone or width < _BRANDED):
        return glance(view, width - sum(len(words) for words, _ in right), alone=alone), right
    left: list[Piece] = [("verl-tui ", "dim")] if width >= _BRANDED else []
    if view.run is not None:
        left.extend(_run_pieces(view, width))
    elif view.monitor.waiting or view.monitor.problems:
        sentence = one_line("; ".join((*view.monitor.problems, *view.monitor.waiting)), 400)
        room = width - 20 if width >= _BRANDED else width
        left.append((middle(sentence, max(8, room), ascii_only=view.ascii), "warning"))
    elif view.loading:
        left.append(("looking for logs …", "dim"))
    if view.paused:
        right.append((" PAUSED, p goes on ", "warning"))
    if view.loading and view.run is not None:
        right.append((f" reading {view.monitor.loaded():.0%}", "dim"))
    elif view.run is not None and (view.replay is None or width >= _ROOMY):
        right += standing(view.run)
    if width >= _BRANDED:
        right.append((" ? help", "dim"))
    return left, right


def _replay_pieces(view: View, width: int) -> Iterator[Piece]:
    if view.replay is not None:
        yield f" {view.replay.words(width)} ", "warning" if view.replay.paused else "accent"


def _run_pieces(view: View, width: int) -> Iterator[Piece]:
    run, now = view.run, view.now
    assert run is not None
    current = state(run, now)
    yield run.name, "strong"
    yield f"  {current.value}", STATE_ROLES.get(current, "dim")
    if run.step is not None:
        total = run.total_steps
        word = "step " if width >= _BRANDED else ""
        yield f"  {word}{run.step}" + (f"/{total} {int(100 * min(1.0, run.step / total))}%" if total else ""), ""
    if (left := remaining(run, now)) is not None:
        yield f"  ETA {duration(left)}", ""
    if (quiet := silence(run, now)) is not None:
        yield f"  last record {age(quiet)}" + (" ago" if quiet >= 10 else ""), "dim"
