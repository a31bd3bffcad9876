"""Samples that verl and TRL print on the console: of validation or training, whole, with all their
values.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from log_reading import drain

from verl_tui.records import MetricRows, Sample, Unreadable
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.source import FileSource

MADE = (
    Path(
        os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs")
    ).parent
    / "made"
)
RAY = "(TaskRunner pid=7) "
TABLE = """\
  1%|          | 3/300 [00:00<00:31,  9.61it/s]╭──────────────── Step 3 ────────────────╮
│ ┏━━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━┳━━━━━━━┳━━━━━━━━━━━┓ │
│ ┃ Prompt   ┃ Completion ┃ says ┃ short ┃ Advantage ┃ │
│ ┡━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━╇━━━━━━━╇━━━━━━━━━━━┩ │
│ │ say it   │ it is said │ 0.50 │ -0.25 │     -1.28 │ │
│ │ again    │ {'loss':   │      │       │           │ │
│ ├──────────┼────────────┼──────┼───────┼───────────┤ │
│ │ say no   │ │          │ 1.00 │  None │      1.00 │ │
│ └──────────┴────────────┴──────┴───────┴───────────┘ │
╰──────────────────────────────────────────────────────╯
"""


def block(prompt: str, *values: str) -> str:
    lines = [
        f"[prompt] {prompt}",
        "more of it",
        "[response] r",
        "",
        "and on",
        "[ground_truth] 4",
        *values,
    ]
    return "".join(f"{RAY}{line}\n" for line in lines)


def samples_in(path: Path, text: str) -> list[Sample]:
    path.write_text(text)
    source = FileSource(path, console)
    records = [*drain(source), *source.finish()]
    return [record for record in records if isinstance(record, Sample)]


def test_what_follows_a_validation_is_a_validations_with_its_other_values(tmp_path):
    text = (
        f"{RAY}validation generation end\n"
        + block("q0", "[score] 0.5", "[acc] True", "[pred] four words")
        + f"{RAY}step:0 - val-core/x:0.5 - val/y:1\n"
        + block("q1", "[score] 1.0")
        + f"{RAY}step:1 - actor/loss:0.5 - critic/x:1\n"
        + f"{RAY}validation generation end\n"
        + block("q2", "[score] 0.25", "[acc] 0.0")
        + block("q3", "[acc] 1.0", "[format] 0.5")
        + "(WorkerDict pid=8) something else\n"
        + f"{RAY}step:2 - actor/loss:0.5 - critic/x:1\n"
    )
    found = samples_in(tmp_path / "train.log", text)
    assert [
        (
            sample.step,
            sample.validation,
            sample.prompt,
            sample.score,
            dict(sample.extras),
        )
        for sample in found
    ] == [
        (0, True, "q0\nmore of it", 0.5, {"acc": 1.0, "pred": "four words"}),
        (1, False, "q1\nmore of it", 1.0, {}),
        (2, True, "q2\nmore of it", 0.25, {"acc": 0.0}),
        (2, True, "q3\nmore of it", None, {"acc": 1.0, "format": 0.5}),
    ]
    assert {sample.response for sample in found} == {"r\n\nand on"}


def test_the_validation_before_a_resumed_training_is_of_the_step_it_goes_on_from(
    tmp_path,
):
    text = (
        f"{RAY}step:11 - actor/loss:0.5 - critic/x:1\n"
        + f"{RAY}Setting global step to 10\n"
        + f"{RAY}validation generation end\n"
        + block("q", "[score] 0.5")
        + f"{RAY}step:10 - val-core/x:0.5\n"
    )
    assert [
        (sample.step, sample.validation)
        for sample in samples_in(tmp_path / "train.log", text)
    ] == [(10, True)]


def test_the_last_sample_of_a_log_is_not_lost(tmp_path):
    (sample,) = samples_in(
        tmp_path / "train.log", block("q", "[score] 0.5", "[acc] 1.0")
    )
    assert (sample.score, dict(sample.extras)) == (0.5, {"acc": 1.0})


def test_tables_that_trl_prints(tmp_path):
    found = samples_in(
        tmp_path / "train.log", TABLE + "{'loss': 0.5, 'epoch': 0.1}\n" + TABLE
    )
    assert [
        (sample.step, sample.prompt, sample.response, sample.score) for sample in found
    ] == [
        (3, "say it again", "it is said{'loss':", 0.25),
        (3, "say no", "│", 1.0),
    ], "one printed twice counts once"


CLEARED = "\r" + " " * 40 + "\r"
BAR = " {0}0%|██  | {0}/10 [00:03<00:08,  1.27s/it]"
ANSWERS = f"""\
{BAR.format(2)}{CLEARED}{{'objective/kl': 0.5, 'episode': 12, 'epoch': 0.02}}
\r{BAR.format(2)}\r{BAR.format(3)}┏━━━━━━━━━┳━━━━━━━━━━━━━━━━┳━━━━━━━┓
┃ query   ┃ model response ┃ score ┃
┡━━━━━━━━━╇━━━━━━━━━━━━━━━━╇━━━━━━━┩
│ say it  │ it is │ said   │ -0.25 │
│ again   │ {{'loss': 7.0}}  │       │
├─────────┼────────────────┼───────┤
│ say no  │ 12             │ 1.5   │
└─────────┴────────────────┴───────┘
"""


def test_tables_without_a_title_are_answers_of_the_step_before(tmp_path):
    found = samples_in(tmp_path / "train.log", ANSWERS)
    assert [(one.step, one.prompt, one.response, one.score) for one in found] == [
        (3, "say it again", "it is │ said {'loss': 7.0}", -0.25),
        (3, "say no", "12", 1.5),
    ]
    assert all(one.validation for one in found)


LEADS = (RAY, "", f"\x1b[36m{RAY[:-1]}\x1b[0m ", "(Worker pid=8) ")
PARTS = (
    "[prompt] q", "[response] r", "prose", "", "step:3 - a:1", "(3) 4", " [5]",
    "step:4 - a:1 - b:2 - c:3 - d:4 - e:5", "\x1b[31mred\x1b[0m", "bar\rover it", "\0hole",
    "[ground_truth] 4", "[score] 1.0", "[acc] 1.0", "\x1b]0;title",
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "leads"), [(1, LEADS), (1996, [RAY]), (2100, [RAY])]
)
def test_lines_that_come_together_say_what_each_says_by_itself(before, leads):
    waiting = COLOURED + "".join(
        f"(Worker pid=8) [{field}] 1\n" for field in ("prompt", "response", "score")
    )
    begun = f"{waiting}{RAY}[prompt] q\n{RAY}[response] r\n" + f"{RAY}prose\n" * before
    for lead, part in itertools.product(leads, PARTS):
        rest = f"{lead}{part}\n{RAY}prose\n{RAY}[score] 1\n{RAY}[acc] 2\n{RAY}over\n"
        log = f"{begun}{rest}".encode()
        assert decoded([log]) == decoded(log.splitlines(keepends=True)), (lead, part)


COLOURED = "\x1b[36ma colour shows\x1b[0m that no terminal wrapped the lines\n"
BAR = "12%|█   | 3/100 [00:10<05:00,  5.00s/it]"


def decoded(pieces: list[bytes]) -> list[object]:
    """Return the samples that pieces of a log tell of, and the steps and places of its rows."""
    reader = console.reader(Path("a.log"))
    records = [record for piece in pieces for record in reader.feed(piece)] + [
        *reader.finish()
    ]
    rows = [record for record in records if isinstance(record, MetricRows)]
    return [
        *(record for record in records if isinstance(record, Sample | Unreadable)),
        *sorted(
            place for one in rows for place in zip(one.orders, one.steps, strict=True)
        ),
    ]


@pytest.mark.skipif(not MADE.exists(), reason=f"no {MADE}")
def test_real_consoles():
    validated = [
        record
        for record in drain(FileSource(MADE / "verl061_healthy/train.log", console))
        if isinstance(record, Sample)
    ]
    assert [(sample.step, sample.validation) for sample in validated] == [
        (step, True) for step in range(0, 41, 5)
    ]
    assert {"length", "starts"} <= set(validated[0].extras)
    source = FileSource(MADE / "t019_log1/train.log", console)
    printed = [
        record
        for record in (*drain(source), *source.finish())
        if isinstance(record, Sample)
    ]
    assert [sample.step for sample in printed] == [
        step for step in range(1, 301) for _ in range(8)
    ]


# -- as forks print them ---------------------------------------------------------------------------

SEARCHED = """\
(main_task pid=7) epoch 0, step 4
(main_task pid=7) --------------------------------
(main_task pid=7) Golden answers: ['Lake Ohrid']
(main_task pid=7) Extracted answer: Lake Prespa
(main_task pid=7) Solution string: <|im_start|>user
(main_task pid=7) Which lake?<|im_end|>
(main_task pid=7) <|im_start|>assistant
(main_task pid=7) <think>step: it is in the south</think>
(WorkerDict pid=9) Traceback (most recent call last):
(WorkerDict pid=9) ValueError: no such index
(main_task pid=7)
(main_task pid=7) <answer>Lake Prespa</answer>
(main_task pid=7) --------------------------------
(main_task pid=7) Target: 24 | Numbers: [3 8]
(main_task pid=7) Extracted equation: 3*8
(main_task pid=7) Solution string: Assistant: 3*8
(main_task pid=7) epoch 0, step 5
(main_task pid=7) Golden answers: ['cut']
(main_task pid=7) Solution string: half of
"""
REASONED = """\
validation generation end
============================ Processing New Sample =============================
[Ground Truth] Final identities: {'Mia': 'knight'}

[Model Response]
<think>She is.</think>

<answer>Mia is a knight</answer>

[Structure Validation]
  Format score: 1
[Content Validation]
  Content validation: FULL MATCH
--------------------------------- Final Score ----------------------------------
  Format: 1
  Answer: 2
  Total: 3
================================================================================
<|im_start|>system
step:0 - val/test_score/kk:0.25
[Ground Truth] Final identities: {'Leo': 'knave'}
[Model Response]
Leo is a knight
[Structure Validation]
  Total: -1.5
"""


def test_blocks_of_search_r1_and_tinyzero(tmp_path):
    first, second, third = samples_in(tmp_path / "a.log", SEARCHED)
    assert first == Sample(
        4,
        "<|im_start|>user\nWhich lake?<|im_end|>\n",
        "<think>step: it is in the south</think>\n\n<answer>Lake Prespa</answer>",
        None,
        "['Lake Ohrid']",
        extras={"extracted_answer": "Lake Prespa"},
    )
    assert (second.step, second.response, second.ground_truth) == (
        4,
        "Assistant: 3*8",
        "24 | Numbers: [3 8]",
    )
    assert (third.step, third.response) == (5, "half of")


def test_blocks_of_logic_rl(tmp_path):
    first, second = samples_in(tmp_path / "a.log", REASONED)
    assert first == Sample(
        0,
        "",
        "<think>She is.</think>\n\n<answer>Mia is a knight</answer>",
        3.0,
        "Final identities: {'Mia': 'knight'}",
        extras={"format": 1.0, "answer": 2.0},
        validation=True,
    )
    assert (second.step, second.score, second.validation) == (1, -1.5, False)
