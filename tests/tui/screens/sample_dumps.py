"""Dumps of samples, and the screen that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jsonl import write_jsonl
from textual.widgets import Input
from watching import press, text, until

from verl_tui.tui.screens.samples import SamplesScreen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from verl_tui.tui.app import VerlApp


def row(step: int, index: int, **more: Any) -> dict[str, Any]:
    """Return one row of a dump: two prompts a step with three answers each."""
    prompt = index // 3
    fields = {
        "input": f"system words\n\nquestion {prompt}",
        "output": f"answer {step}-{index}",
        "gts": "42",
        "score": float(index % 2),
        "step": step,
        "acc": index / 10,
        "uid": f"uid{step}x{prompt}_0_{index}",
    }
    return {**fields, **more}


def write(directory: Path, step: int, rows: Sequence[dict[str, Any]]) -> None:
    """Write the dump of a step."""
    write_jsonl(directory / f"{step}.jsonl", rows)


def write_dumped_run(directory: Path) -> Path:
    """Write a run with training dumps of steps 1 to 4 and validation dumps of steps 2 and 4; return
    its directory.
    """
    folder = directory / "grpo"
    values = [{"step": n, "data": {"critic/score/mean": 0.5}} for n in range(1, 5)]
    write_jsonl(folder / "verl.jsonl", values)
    for step in range(1, 5):
        write(folder / "rollouts", step, [row(step, index) for index in range(6)])
    for step in (2, 4):
        write(
            folder / "validation",
            step,
            [
                row(step, index, output=f"validated {step}-{index}")
                for index in range(3)
            ],
        )
    return folder


def screen(app: VerlApp) -> SamplesScreen:
    """Return the screen in front, which is that of the samples."""
    assert isinstance(app.screen, SamplesScreen)
    return app.screen


def at(app: VerlApp) -> tuple[int, bool, int] | None:
    """Return step, kind and index of the sample shown."""
    shown = screen(app).browse.shown
    return (shown[0].step, shown[0].validation, shown[1]) if shown is not None else None


async def start(pilot: Pilot[Any], app: VerlApp, *keys: str) -> None:
    """Open the screen, and wait until the sample is drawn."""
    await press(pilot, "o")
    await until(pilot, lambda: "answer 4-0" in text(app))
    await until(pilot, lambda: screen(app).browse.listing.complete)
    await pilot.press(*keys)


async def type_filter(pilot: Pilot[Any], words: str) -> None:
    """Filter the samples by these words."""
    await pilot.press("slash")
    pilot.app.screen.query_one(Input).value = words
    await pilot.press("enter")
