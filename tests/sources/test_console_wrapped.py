"""Consoles as a terminal showed them: lines that were wrapped are whole again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from log_reading import notes, read_text, values

from verl_tui.sources.formats.console import reader as console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.runs.run import Run

BAR = "Training Progress:  10%|█         | 3/30 [00:03<00:26,  1.01it/s]"
START = [
    f"WARNING {i}: {word} is not installed on this machine, so {use} is done the slow way, which "
    f"takes {i} times as long; see the documentation of {word} for how to have it installed here"
    for i, (word, use) in enumerate(
        {
            "flash-attn": "attention",
            "liger": "the loss",
            "apex": "Adam",
            "triton": "most",
        }.items()
    )
] * 2
FAILURE = [
    "Traceback (most recent call last):",
    '  File "/opt/verl/verl/trainer/ppo/ray_trainer.py", line 1234, in fit and so on for a long while yet',
    "RuntimeError: the judge of the rewards is away, and nobody knows when it is to come back from there",
]


def verl(steps: int = 6) -> list[str]:
    """Return a console of verl with values of many lengths."""
    chance = random.Random(7)
    lines = [*START, "(TaskRunner pid=7) Total training steps: 30"]
    for step in range(1, steps + 1):
        numbers = [
            f"group_{i % 5}/name_{i}:{round(chance.random(), chance.randint(1, 17))}"
            for i in range(40)
        ]
        lines += [f"(TaskRunner pid=7) step:{step} - {' - '.join(numbers)}", BAR]
    return [*lines, *FAILURE]


def trl(steps: int = 12) -> list[str]:
    """Return a console of TRL, of which a terminal has left no bars."""
    chance = random.Random(7)
    dicts = [
        {f"rewards/f{i}/mean": f"{chance.random():.4g}" for i in range(8)}
        | {"epoch": f"{n / 100}"}
        for n in range(1, steps + 1)
    ]
    return [*START, *(str({"loss": "0.5", **one}) for one in dicts), *FAILURE]


CONSOLES = {"verl": verl(), "TRL": trl()}


def captured(lines: Iterable[str], columns: int) -> str:
    """Return what a terminal shows of lines: rows without spaces at their ends."""
    rows = [
        line[at : at + columns].rstrip()
        for line in lines
        for at in range(0, max(len(line), 1), columns)
    ]
    return "".join(f"{row}\n" for row in rows)


def points(run: Run) -> dict[tuple[str, int], float]:
    return {
        (key, step): value
        for key in run.keys
        for step, value in values(run, key).items()
    }


@pytest.mark.parametrize("name", CONSOLES)
@pytest.mark.parametrize("columns", [41, 81, 133, 237])
def test_wrapped_lines_are_whole_again(tmp_path, name, columns):
    printed = read_text(tmp_path, "".join(f"{line}\n" for line in CONSOLES[name]))
    run = read_text(tmp_path, captured(CONSOLES[name], columns))
    assert points(run) == points(printed)
    assert f"a terminal of {columns} columns" in notes(run)
    assert run.outcome is not None
    assert printed.outcome is not None
    assert run.outcome.kind is printed.outcome.kind


def test_a_capture_of_dicts_alone_is_a_console(tmp_path):
    """Also where no row holds a whole one."""
    dicts = [one for one in trl() if one.startswith("{")]
    assert console.matches(tmp_path, captured(dicts, 100).encode())


# -- what only looks wrapped -----------------------------------------------------------------------

SAME_LENGTH = [
    f"[2026-11-20 10:00:{i:02}] worker {i:02} saved all that it had to save"
    for i in range(9)
]
SETTINGS = [
    "{'actor_rollout_ref': {'actor': {'clip_ratio': 0.2, 'entropy_coeff': 0.25,",
    "                                 'grad_clip': 1.0}},",
    " 'trainer': {'project_name': 'p', 'total_epochs': 3}}",
]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(SAME_LENGTH),
        "\n".join(SETTINGS),
        captured(verl(), 80).replace("WARNING 0", "\rWARNING 0"),
        captured(verl(), 80).replace("WARNING 0", "\x1b[32mWARNING 0"),
        captured(verl(), 1200),
    ],
)
def test_lines_that_nobody_wrapped_stay_as_they_are(tmp_path, text):
    run = read_text(tmp_path, f"{text}\nstep:1 - a:1 - b:2\n")
    assert "were put together" not in notes(run)
