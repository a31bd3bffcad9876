"""Which prompts are always right, always wrong or flip, by the scores of several steps."""

from __future__ import annotations

import tracemalloc

import pytest
from jsonl import write_jsonl
from rich.cells import cell_len

from verl_tui.on_demand import score_map
from verl_tui.on_demand.score_map import ScoreMap
from verl_tui.records import Dump, Sample
from verl_tui.rendering.samples.prompts import (
    PromptColumns,
    PromptTable,
    map_words,
    why_no_map,
)
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.samples import Samples

NAN = float("nan")


def printed(prompts):
    """Return samples as a log has printed them.

    Args:
        prompts: The scores of each prompt's responses at the steps 1, 2 …
    """
    samples = Samples()
    for prompt, drawn in prompts.items():
        for step, scores in enumerate(drawn, 1):
            for score in scores:
                samples.add(Sample(step, prompt, "it", score), step)
    return samples


def dumped(directory, steps, samples=None):
    """Write dumps, each with prompts and scores; return the samples of the run."""
    samples = Samples() if samples is None else samples
    for step, rows in steps.items():
        written = [
            {"input": prompt, "output": "it", "score": score} for prompt, score in rows
        ]
        path = write_jsonl(directory / f"{step}.jsonl", written)
        stat = path.stat()
        dump = Dump(step, str(path), validation=False, size=stat.st_size)
        samples.add_dump(dump._replace(modified=stat.st_mtime))
    return samples


def read(samples, found=None):
    """Return all scores of the training."""
    found = found or ScoreMap()
    found.show(samples, validation=False)
    while found.waits():
        found.read_on()
    return found


def signs(found, width=100):
    """Return what each row shows: its kind and a sign for each step, under the prompt's words."""
    table = PromptTable(found)
    columns = PromptColumns(table, width, table.steps[-1])
    rows = {row.words: columns.row(row, chosen=False) for row in table.rows}
    assert all(cell_len(text_of(row)) == width for row in rows.values())
    drawn = (
        [
            table.mark(*([row.cells[step]] if step in row.cells else []))
            for step in table.steps
        ]
        for row in table.rows
    )
    return {
        row.words: f"{table.kind_words(row.kind)}: {text_of(marks)}"
        for row, marks in zip(table.rows, drawn, strict=True)
    }


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ([[1], [1], [1]], "always right: ✓✓✓"),
        ([[0], [0], [0]], "always wrong: ✗✗✗"),
        ([[0], [0], [1]], "learned: ✗✗✓"),
        ([[1], [0], [0]], "forgotten: ✓✗✗"),
        ([[0], [1], [0]], "unstable: ✗✓✗"),
        ([[0], [], [1]], "learned: ✗ ✓"),
        ([[0, 0, 0, 1], [1, 1, 1, 0], [1]], "learned: ▂▇✓"),
        ([[0, 0, 1], [0, 1, 0], [0]], "partly right: ▂▂✗"),
        ([[1, 1, 0], [1], [1]], "partly right: ▄✓✓"),
        ([[0], [None], [0]], "always wrong: ✗·✗"),
        ([[NAN], [None], []], "no score: ·· "),
        ([[1, NAN], [1], [1]], "always right: ✓✓✓"),
        ([[0, None], [1], [1]], "learned: ✗✓✓"),
    ],
)
def test_what_became_of_a_prompt(drawn, shown):
    others = {"once": [[1], [], []], "another": [[0], [1], [0]]}
    found = signs(read(printed({"prompt": drawn, **others})))
    assert found["prompt"] == shown
    assert "once" not in found, "a prompt of one step has no past"


def test_scores_that_are_neither_right_nor_wrong():
    samples = printed({"up": [[-3], [0], [3]], "down": [[2.5], [-1], [-2]]})
    found = read(samples)
    assert signs(found) == {"up": "rose: ▁▄▇", "down": "fell: ▇▂▁"}
    table = PromptTable(found)
    columns = PromptColumns(table, 80, 3)
    assert table.counts == "2, 1 rose, 1 fell"
    assert "high from 0 on, half the range of scores" in map_words(found, table)
    assert text_of(columns.row(table.rows[0], chosen=True)).endswith("▁  ▄  ▇  ")
    samples.add(Sample(4, "up", "it", 9.0, validation=True), 4)
    assert signs(read(samples, found))["up"] == "rose: ▁▄▇", "kinds do not mix"
    same = printed({"one": [[0.3], [0.3]]})
    assert signs(read(same)) == {"one": "all alike: ▁▁"}


def test_prompts_are_named_by_what_tells_them_apart(tmp_path):
    begin = f"system\nThink, then answer in a box.\nuser\n{'Be careful. ' * 9}"
    rows = [
        (begin + words, 1) for words in ("2 + 2", "\x1b[31m汉字\x1b]0;x\x07\u202e 3")
    ]
    first, second = signs(read(dumped(tmp_path, {1: rows, 2: rows})))
    assert first == "Be careful. Be careful. 2 + 2"
    assert second == "Be careful. Be careful. 汉字� 3"


def test_steps_are_read_again_once_they_change(tmp_path):
    samples = dumped(tmp_path, {1: [("p", 0), ("p", 0)], 2: [("p", 0)]})
    found = read(samples)
    assert signs(found) == {"p": "always wrong: ✗✗"}
    dumped(tmp_path, {1: [("p", 0)], 2: [("p", 1)]}, samples)
    assert signs(read(samples, found)) == {"p": "learned: ✗✓"}
    before = found.revision
    assert read(samples, found).revision == before, "nothing is read twice"
    (tmp_path / "2.jsonl").unlink()
    again = Samples()
    again.add_dump(Dump(2, str(tmp_path / "2.jsonl"), validation=False, size=9))
    assert len(read(again).failed) == 1


def test_why_there_is_no_map():
    for prompts, why in (
        (
            {"a": [[1]], "b": [[], [1]]},
            "None of 2 training prompts comes again in 2 steps.",
        ),
        ({"a": [[1]]}, "A map of prompts takes samples of at least two training steps"),
        ({"": [[1], [1]]}, "The training samples in the log state no prompts"),
    ):
        found = read(printed(prompts))
        table = PromptTable(found)
        assert not table.rows
        assert why_no_map(found, table, "training").startswith(why)


def test_long_dumps_take_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(score_map, "MOST_CELLS", 500)
    long = "word " * 1000
    samples = dumped(
        tmp_path,
        {step: [(f"{at} {long}", at % 2) for at in range(200)] for step in range(1, 5)},
    )
    tracemalloc.start()
    found = read(samples)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e6 < 200 * len(long) * 4, "of texts only beginnings are kept"
    table = PromptTable(found)
    assert table.steps == [2, 3, 4]
    words = map_words(found, table)
    assert "the newest 3 steps of 4" in words
    # A step with more prompts than that is not read to its end, and counted.
    monkeypatch.setattr(score_map, "MOST_CELLS", 50)
    assert len(read(samples).failed) == 1
    monkeypatch.undo()
    # as bytes do
    monkeypatch.setattr(score_map, "BUDGET", 1_500_000)
    assert [*read(samples).steps] == [4]


def test_more_steps_than_columns_share_them():
    found = read(printed({"p": [[at // 50] for at in range(100)], "q": [[1]] * 100}))
    table = PromptTable(found)
    columns = PromptColumns(table, 60, 51)
    row = table.rows[1]
    shown = columns.row(row, chosen=True)
    assert text_of(shown).endswith(" " + "✗" * 16 + "▂" + "✓" * 17)
    assert ("▂", "here") in shown
    assert text_of(table.detail(row, 51, 60)[0]) == "step 51 ✓ mean 1 of 1 response"
