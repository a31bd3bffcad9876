"""Files of very many metrics or runs cost what their size is worth, and what is not kept is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from log_reading import notes, read_text, values

from verl_tui.sources import files
from verl_tui.sources.discovery.finder import Finder

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 40
"""Metrics of the files here."""
NAMES = [f"group/metric {n}" for n in range(MANY)]
FEW = 25


def wide(record: Callable[[int, dict[str, float]], object]) -> str:
    """Return two records of all metrics."""
    return "".join(
        f"{record(step, dict.fromkeys(NAMES, step / 4))}\n" for step in (1, 2)
    )


WIDE = {
    "m.jsonl": wide(lambda step, data: json.dumps({"step": step, "data": data})),
    "flat.jsonl": wide(lambda step, data: json.dumps({"step": step, **data})),
    "h.json": json.dumps([{"step": n, **dict.fromkeys(NAMES, n / 4)} for n in (1, 2)]),
    "m.csv": f"step,{','.join(NAMES)}\n1{',0.25' * MANY}\n2{',0.5' * MANY}\n",
    "train.log": wide(
        lambda step, data: f"step:{step} - " + " - ".join(f"{one}:{data[one]}" for one in data)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_the_first_metrics_are_kept_and_the_others_said(tmp_path, monkeypatch, name):
    monkeypatch.setattr(files, "MOST_METRICS", FEW)
    run = read_text(tmp_path, WIDE[name], name)
    assert list(run.keys) == NAMES[:FEW]
    assert values(run, NAMES[FEW - 1]) == {1: 0.25, 2: 0.5}
    assert f"only the first {FEW} metrics are kept" in notes(run)


NAMELESS = ["", " ", "\u200b"]


@pytest.mark.parametrize("name", NAMELESS)
@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("m.jsonl", '{{"step": {0}, "loss": 0.5, "{1}": {0}.5}}\n'),
        ("verl.jsonl", '{{"step": {0}, "data": {{"loss": 0.5, "{1}": {0}.5}}}}\n'),
    ],
)
def test_a_metric_without_a_name_has_a_word_for_it(tmp_path, file, form, name):
    lines = (form.format(step, name) for step in (1, 2))
    run = read_text(tmp_path, "".join(lines), file)
    assert {*run.keys} == {"loss", "(unnamed)"}
    assert values(run, "(unnamed)") == {1: 1.5, 2: 2.5}


def test_columns_without_a_name_are_no_metrics(tmp_path):
    run = read_text(tmp_path, ",step,loss,,\n0,1,0.5,7,8\n1,2,0.5,7,8\n", "m.csv")
    assert list(run.keys) == ["loss"]


def test_a_chart_of_very_many_runs_is_bounded_aloud(tmp_path):
    path = tmp_path / "chart.csv"
    names = "".join(f",r{n} - loss" for n in range(150))
    path.write_text(f"Step{names}\n1{',2' * 150}\n")
    discovery = Finder([str(path)]).scan()
    assert len(discovery.runs) + 50 in (150, 151)
    assert discovery.passed[0].reason.endswith("further runs in it are not shown")
