"""Where a log ended at an earlier moment: never beyond the line of the next step, never before that
of the own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from verl_tui.on_demand.log_blocks import LogFile
from verl_tui.on_demand.log_reader import ReplayCutoff

if TYPE_CHECKING:
    from pathlib import Path


def console(first: int, last: int) -> str:
    """Return what a console prints for some steps: two lines, then the step's own."""
    return "".join(
        f"generating\nTraining Progress: {step}%|# | {step}/90\nstep:{step} - critic/score/mean:0.5\n"
        for step in range(first, last + 1)
    )


def records(first: int, last: int) -> str:
    """Return the records of some steps, three a step."""
    return "".join(
        json.dumps({"scope": scope, "step": step, "text": "step:9 - x"}) + "\n"
        for step in range(first, last + 1)
        for scope in ("rollout", "ppo", "sample")
    )


def shown(path: Path, text: str, size: int, step: int | None) -> str:
    """Return what is to be seen of a log of which so many bytes had been read."""
    path.write_text(text, encoding="utf-8")
    with path.open("rb") as file:
        end = ReplayCutoff(size, step).end(LogFile(file.fileno()))
    return text.encode()[:end].decode()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("write", [console, records])
def test_it_ends_between_the_step_and_the_next_wherever_it_was_thought_to(
    tmp_path, write, share
):
    text = "starting\n" + write(1, 50)
    seen = shown(tmp_path / "log", text, int(share * len(text)), 20)
    until = "starting\n" + write(1, 20)
    assert seen.startswith(until)
    begun = "generating\nTraining Progress: 21%|# | 21/90\n"
    assert len(seen) <= len(until + begun)
    assert text.startswith(seen)
    assert seen.endswith("\n")


def test_what_comes_after_the_step_is_seen_as_far_as_it_was_read(tmp_path):
    crashed = f"{console(1, 20)}Traceback (most recent call last):\nOSError: too bad\n"
    seen = shown(tmp_path / "log", crashed + console(10, 30), len(crashed) + 3, 20)
    assert seen.endswith("too bad\n")


def test_steps_that_come_twice_are_distinguished_by_where_it_was(tmp_path):
    text = console(1, 30) + console(1, 30)
    assert shown(tmp_path / "log", text, len(text) // 4, 20) == console(1, 20)
    late = shown(tmp_path / "log", text, 3 * len(text) // 4, 20)
    assert late.startswith(console(1, 30) + console(1, 20))


def test_a_log_that_names_no_steps_ends_with_the_line_that_was_read(tmp_path):
    text = "".join(f"{{'loss': 0.{step}}}\n" for step in range(100, 200))
    assert shown(tmp_path / "log", text, 100, 3) == text[: 100 // 16 * 16]
