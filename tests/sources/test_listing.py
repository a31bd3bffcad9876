"""A directory with a file a step is listed when it says that it has changed."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.sources.folders.step_files import Listing
from verl_tui.sources.formats.rollouts import dump_step

if TYPE_CHECKING:
    import pytest


class Clock:
    """Stands until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def dump(directory: Path, step: int) -> Path:
    path = directory / f"{step}.jsonl"
    path.write_text("{}\n")
    return path


def test_a_directory_that_stays_as_it_is_is_listed_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, listdir = [], os.listdir
    monkeypatch.setattr(
        os, "listdir", lambda path: listed.append(path) or listdir(path)
    )
    clock = Clock()
    listing = Listing(tmp_path, dump_step, clock=clock)
    first = dump(tmp_path, 1)
    assert [*listing.changes()] == [1]
    clock.now = 1.0  # a file system may count whole seconds
    assert not listing.changes()
    assert len(listed) == 2
    clock.now = 5.0
    assert not listing.changes()
    with first.open("a") as file:
        file.write("{}\n")
    assert [*listing.changes()] == [1], "a file that grows is seen all the same"
    assert len(listed) == 2
    dump(tmp_path, 2)
    assert [*listing.changes()] == [2]
    assert len(listed) == 3
    clock.now = 100.0
    assert not listing.changes()
    assert len(listed) == 4


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "wait"]), st.integers(1, 20)),
        max_size=30,
    )
)
def test_what_is_known_is_what_lies_there(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    times = count(10**18, 10**9)
    reported = set[int]()
    with TemporaryDirectory() as name:
        directory = Path(name)
        listing = Listing(directory, dump_step, clock=clock)
        for what, number in steps:
            path = directory / f"{number}.jsonl"
            if what == "wait":
                clock.now += number
            elif what == "add":
                dump(directory, number)
            else:
                path.unlink(missing_ok=True)
            # the clock of the file system may stand while that of the test goes
            if what != "wait":
                os.utime(directory, ns=(next(times),) * 2)
            for step, stamp in listing.changes().items():
                (reported.discard if stamp is None else reported.add)(step)
            assert reported == {int(one.stem) for one in directory.iterdir()}
