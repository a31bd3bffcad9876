"""Samples written to a file, and words of a response."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from verl_tui.on_demand.samples import KeptRows, SamplePage
from verl_tui.records import Sample
from verl_tui.rendering.samples.export import Export
from verl_tui.rendering.samples.listing import excerpt
from verl_tui.runs.samples import Place

PLACE = Place(120, validation=False)


def page(count: int) -> SamplePage:
    """Return a page of samples in memory."""
    found = SamplePage(PLACE, KeptRows(()), threading.Condition())
    found.show(None, [Sample(120, "p", f"answer {number}") for number in range(count)])
    return found


def written(export):
    """Return an export that has come to its end."""
    while not export.read_on():
        assert export.waits()
    assert not export.waits()
    return export


# -- export ----------------------------------------------------------------------------------------


def test_writes_samples_as_they_are_kept(tmp_path):
    export = written(Export(page(4), [1, 3, 0], "grpo", tmp_path))
    assert export.path == tmp_path / "verl-tui-grpo-step-120-3-samples.jsonl"
    lines = [json.loads(line) for line in export.path.read_text().splitlines()]
    assert [line["index"] for line in lines] == [1, 3, 0]
    assert lines[0] == {
        "step": 120,
        "index": 1,
        "validation": False,
        "prompt": "p",
        "response": "answer 1",
    }
    assert export.words() == f"3 samples in {export.path}, as verl-tui keeps them"


def test_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tui.rendering.samples.export.BUDGET", -1.0)
    export = Export(page(5), range(5), "grpo", tmp_path)
    for count in range(1, 5):
        assert not export.read_on()
        assert len(export.path.read_text().splitlines()) == count
    assert export.read_on()
    assert [
        json.loads(line)["index"] for line in export.path.read_text().splitlines()
    ] == [0, 1, 2, 3, 4]


def test_counts_what_is_on_the_disk(tmp_path):
    export = Export(page(1), [0], "grpo", tmp_path)
    export.path = Path("/dev/full")
    assert written(export).words() == (
        "0 samples in /dev/full, as verl-tui keeps them; then it failed: no space left on device"
    )


def test_never_writes_over_a_file(tmp_path):
    paths = []
    for _ in range(3):
        export = Export(page(1), [0], "grpo", tmp_path)
        paths.append(written(export).path.name)
    assert paths == [
        f"verl-tui-grpo-step-120-sample-1{n}.jsonl" for n in ("", "-2", "-3")
    ]


# -- words of a response ---------------------------------------------------------------------------


def test_excerpts():
    end = excerpt("<think>\nSo it is.\nDone.")
    assert end.piece(60) == ("So it is. Done.", "dim")
    assert end.piece(14) == ("…t is. Done.", "dim") or end.piece(14)[0][0] == "…"
    assert excerpt("So it is.\n\\boxed{4}\nAs I said.").piece(60) == ("4", "answer")
    assert excerpt(" ").piece(60) == ("(empty)", "dim")
