"""A format is added by its own file and its entry in the catalog: then files of it are found, read
from their end, in workers and on standard input.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from command_line import copy_package, python_with_copy

ADDED = Path(__file__).parent / "added" / "diary.py"
DIARY = "".join(f"day {day}: mood={day / 8} sleep=7\n" for day in range(1, 4001))


ASKS = """
import json
from pathlib import Path
from verl_tui.sources.formats import diary
from verl_tui.cli import main
from verl_tui.sources.ends import EndSource
end = EndSource(Path("logs/my.diary"), diary, 1000)
end.read()
assert end.complete_from > 3900
main(["check", "--json", "logs"])
main(["check", "--json", "-"])
"""


def test_it_is_found_and_read_from_its_end_and_on_standard_input(tmp_path):
    formats = copy_package(tmp_path) / "sources" / "formats"
    shutil.copy(ADDED, formats)
    catalog = formats / "catalog.py"
    text = catalog.read_text().replace("    console,\n)", "    diary,\n    console,\n)")
    catalog.write_text(
        text.replace("(\n    filelogger", "(\n    diary,\n    filelogger")
    )
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "my.diary").write_text(DIARY)
    printed = python_with_copy(tmp_path, "-c", ASKS, input=DIARY)
    decoder, rest, found = json.JSONDecoder(), printed.lstrip(), []
    while rest:
        said, stop = decoder.raw_decode(rest)
        found += said["runs"]
        rest = rest[stop:].lstrip()
    assert [run["step"] for run in found] == [4000, 4000]
    assert {run["sources"][0]["format"] for run in found} == {"diary"}
