"""What an evaluation came to, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.evaluation import PREFIX
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.runs.run import Run


def evaluated(run: Run) -> str:
    """Describe the result of an evaluation, or the newest samples of a training whose log is not
    there.
    """
    trained = run.series(f"{PREFIX}count") is not None
    prefix = PREFIX if trained else f"val_{PREFIX}"
    count, score = (run.series(f"{prefix}{name}") for name in ("count", "score"))
    words = "an evaluation"
    if count is not None:
        samples = counted(int(count.values[-1]), "sample")
        words = f"{words} of {samples}"
        if trained:
            words = f"{samples} of step {count.steps[-1]}"
    if score is not None and len(score.values):
        words += f", mean score {score.values[-1]:.4g}"
    return words
