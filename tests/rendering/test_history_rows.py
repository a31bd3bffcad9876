"""The rows of the finding history."""

from __future__ import annotations

from run_views import make_run, make_view

from verl_tui.health.finding import Episode, Severity
from verl_tui.rendering.history_rows import history_page

LASTING = Episode("kl-high", Severity.WARNING, 7, 9, None, "The KL is high.", "kl")
CLEARED = Episode("collapse", Severity.CRITICAL, None, 3, 5, "The reward fell.")


def test_each_episode_with_its_steps_and_message() -> None:
    view = make_view(make_run())
    rows, starts, _, caption = history_page(view, (LASTING, CLEARED), 60)
    words = ["".join(text for text, _ in row) for row in rows]
    assert words == [
        "▲ kl-high",
        "  since step 7 · raised at step 9 · ongoing",
        "  The KL is high.",
        "✖ collapse",
        "  raised at step 3 · cleared at step 5",
        "  The reward fell.",
    ]
    assert starts == [0, 3]
    assert [rows[at][0][1] for at in starts] == ["warning", "dim"]
    assert caption == "2 raised, 1 ongoing"
