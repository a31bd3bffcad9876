"""Rows of the finding history: every finding with the steps at which it was raised and cleared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.finding import Severity
from verl_tui.rendering.text.printable import middle, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

_MARKS = {Severity.CRITICAL: "✖", Severity.WARNING: "▲", Severity.INFO: "•"}


class HistoryPage(NamedTuple):
    """All episodes."""

    rows: list[Pieces]
    starts: list[int]
    """The row that each begins at."""
    names: Sequence[object]
    """For each the fields that stay the same when it is cleared."""
    caption: str
    """How many there are."""


def history_page(view: View, episodes: Sequence[Episode], width: int) -> HistoryPage:
    """Return the rows of episodes, in this order."""
    rows: list[Pieces] = []
    starts: list[int] = []
    for episode in episodes:
        starts.append(len(rows))
        rows += _episode_rows(view, episode, width)
    if not starts:
        words = "nothing was found so far" if view.run is not None else "no run yet"
        rows = [[(part, "dim")] for part in wrapped(words, width)]
    ongoing = sum(episode.cleared_step is None for episode in episodes)
    caption = f"{len(episodes)} raised, {ongoing} ongoing" if episodes else ""
    names = [(one.id, one.key, one.since_step, one.raised_step) for one in episodes]
    return HistoryPage(rows, starts, names, caption)


def _episode_rows(view: View, episode: Episode, width: int) -> list[Pieces]:
    run = view.run
    acknowledged = run is not None and view.acknowledgements.marked(run.name, episode)
    active = episode.cleared_step is None and not acknowledged
    role = episode.severity.word if active else "dim"
    mark = _MARKS[episode.severity]
    steps = " · ".join(_steps(episode, acknowledged=acknowledged))
    name = middle(episode.id, width - 2)
    rows: list[Pieces] = [[(f"{mark} ", role), (name, role)]]
    for words, words_role in (
        (steps, "dim"),
        (episode.message, "dim" if acknowledged else "text"),
    ):
        lines = wrapped(words, width - 2)
        rows += [[("  ", ""), (line, words_role)] for line in lines]
    return rows


def _steps(episode: Episode, *, acknowledged: bool) -> list[str]:
    """Return the steps at which a finding began, was raised and was cleared, as far as known."""
    steps = []
    if episode.since_step is not None:
        steps.append(f"since step {episode.since_step}")
    if episode.raised_step is not None:
        steps.append(f"raised at step {episode.raised_step}")
    cleared = episode.cleared_step
    steps.append("ongoing" if cleared is None else f"cleared at step {cleared}")
    return [*steps, "acknowledged"] if acknowledged else steps
