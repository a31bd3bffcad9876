"""The kept corpus is read whole: as it grows each file is what it is at once, and no reader fails."""

from __future__ import annotations

from fuzz.damaged import EXAMPLES
from fuzz.kept import LARGEST, case_of, kept
from fuzz.reading_twice import difference


def test_kept_files_are_read_the_same_however_they_grow(tmp_path):
    wrong = []
    for number, (name, data) in enumerate(kept()):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        if (found := difference(case_of(name, data), folder)) is not None:
            wrong.append(f"{name}: {data!r:.300}: {found}")
    assert not wrong


def test_every_format_has_kept_files_and_all_are_small():
    files = kept()
    assert {name for name, _ in files} == EXAMPLES.keys()
    assert sum(len(data) for _, data in files) <= LARGEST
