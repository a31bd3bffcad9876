"""A rule, a spelling and a metric are added by an entry in their table, a diagnosis by its file and
its entries: each is put into a copy of the package, and found in what `check` says of a log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import copy_package, python_with_copy

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRIES = {
    "health/guide.toml": """
[[rule]]
id = "sauce-thick"
severity = "warning"
title = "sauce"
metric = "kitchen/sauce"
condition = "above"
threshold = 2.0
window = 5
why_window = "five spoons"
false_when = "pudding"
meaning = "It burns."
advice = "Stir."
source = "a cook"

[[rule]]
id = "odd-step"
severity = "info"
title = "steps"
condition = "diagnosis"
false_when = "even ones"
meaning = "It ends oddly."
source = "a counter"
""",
    "health/words.toml": """
[odd-step]
message = "it ends at the odd step {since}"
""",
    "metrics/other_frameworks.txt": "kitchen/sauce | thickness of the sauce | spoons | down | loss\n",
}
"""File of the package -> what is added at its end."""
DIAGNOSIS = """
from verl_tui.health.diagnosis import diagnosis


@diagnosis("odd-step")
def odd_step(context):
    step = context.run.step or 0
    return context.rule.finding({}, since=step) if step % 2 else None
"""
SPELLING = (
    'names = [\n  ["entropy", "brain/fog", "how foggy the brain is", "brain.py:1"],'
)
"""The first line of a trainer's names, with one more."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Any]:
    """Return what a copy of the package with all this says of a log."""
    folder = tmp_path_factory.mktemp("added")
    copy = copy_package(folder)
    for name, entry in ENTRIES.items():
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write(entry)
    (copy / "health/diagnoses/odd_step.py").write_text(DIAGNOSIS, encoding="utf-8")
    trainer = copy / "trainers/verl_tutorials.toml"
    text = trainer.read_text(encoding="utf-8")
    trainer.write_text(text.replace("names = [", SPELLING), encoding="utf-8")
    log = folder / "train.jsonl"
    steps = ({"step": at, "kitchen/sauce": 3.0, "brain/fog": 1.0} for at in range(32))
    log.write_text("".join(json.dumps(one) + "\n" for one in steps))
    found: Sequence[Any] = json.loads(python_with_copy(folder, "-c", SAYS, log))
    return found


SAYS = """
import json, sys
from verl_tui.config import Config
from verl_tui.metrics import describe
from verl_tui.monitor import load
run, = (monitor := load(sys.argv[1:], Config(), 1.0)).runs.values()
findings = {one.id: one.message for one in monitor.verdicts[run.name].findings}
label = describe("kitchen/sauce").label
print(json.dumps([findings, run.indicators.get("entropy"), label]))
"""


def test_a_rule_is_an_entry_and_a_diagnosis_its_file_with_entries(said):
    assert said[0]["sauce-thick"].startswith("sauce has stayed above 2")
    assert said[0]["odd-step"] == "it ends at the odd step 31"


def test_a_spelling_and_a_metric_are_entries(said):
    assert said[1:] == ["brain/fog", "thickness of the sauce"]
