"""The kept corpus is read whole: as it grows each file is what it is at once, and no reader fails;
`guided.py` beside this made it.
"""

from __future__ import annotations

from random import Random

import pytest
from fuzz.damaged import EXAMPLES
from fuzz.kept import LARGEST, case_of, kept
from fuzz.mutations import Mutator
from fuzz.parts_of_files import apart, together
from fuzz.reached import Reached
from fuzz.reading_twice import difference

from verl_tui.sources.fields.jsonl import integer


def test_kept_files_are_read_the_same_however_they_grow(tmp_path) -> None:
    wrong = []
    for number, (name, data) in enumerate(kept()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        if (found := difference(case_of(name, data), folder)) is not None:
            wrong.append(f"{name}: {data!r:.300}: {found}")
    assert not wrong


def test_every_format_has_kept_files_and_all_are_small() -> None:
    files = kept()
    assert {name for name, _ in files} == EXAMPLES.keys()
    assert sum(len(data) for _, data in files) <= LARGEST


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_taken_apart_is_the_same_when_put_together(name: str) -> None:
    parts = apart(name, EXAMPLES[name])
    assert len(parts) > 1 or b"\n" not in EXAMPLES[name][:-1]
    assert apart(name, together(name, parts)) == parts


@pytest.mark.parametrize(
    "name", ["events.out.tfevents.1700000000.host.1.0", "run-abc.wandb"]
)
def test_changed_messages_have_right_checksums(name: str, tmp_path) -> None:
    mutator = Mutator(name, [b"loss"], Random(3))
    changed = [mutator.changed(EXAMPLES[name], [EXAMPLES[name]]) for _ in range(20)]
    assert any(one != EXAMPLES[name] and apart(name, one) for one in changed)


def test_ways_through_the_readers_are_noted() -> None:
    with Reached() as one:
        integer(1)
    with Reached() as other:
        integer("1")
    assert one.ways
    assert one.ways != other.ways
    assert {file for file, *_ in one.ways} == {"fields/jsonl.py"}
