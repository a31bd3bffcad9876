"""A format is added by its own file and its entry in the catalog: then files of it are found, read
from their end, in workers and on standard input.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import verl_tui

if TYPE_CHECKING:
    from collections.abc import Callable

ADDED = Path(__file__).parent / "added" / "diary.py"
DIARY = "".join(f"day {day}: mood={day / 8} sleep=7\n" for day in range(1, 4001))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return what runs Python with a copy of the package that the format was added to."""
    folder = tmp_path_factory.mktemp("added")
    shutil.copytree(Path(verl_tui.__file__).parent, folder / "verl_tui")
    formats = folder / "verl_tui" / "sources" / "formats"
    shutil.copy(ADDED, formats)
    catalog = formats / "catalog.py"
    entered = catalog.read_text().replace(
        "    console,\n)", "    diary,\n    console,\n)"
    )
    entered = entered.replace(
        "import (\n    filelogger", "import (\n    diary,\n    filelogger"
    )
    catalog.write_text(entered)
    (folder / "logs").mkdir()
    (folder / "logs" / "my.diary").write_text(DIARY)
    environment = {**os.environ, "PYTHONPATH": str(folder), "VERL_TUI_STATE": ""}

    def python(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *words],
            env=environment,
            cwd=folder,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.stderr
        return done.stdout

    return python


@pytest.mark.parametrize(
    ("path", "given"), [("logs", ""), ("-", DIARY)], ids=["file", "pipe"]
)
def test_it_is_found_and_read(run: Callable[..., str], path: str, given: str) -> None:
    said = run("-m", "verl_tui", "check", "--json", path, given=given)
    (found,) = json.loads(said)["runs"]
    assert found["step"] == 4000
    assert found["sources"][0]["format"] == "diary"


PARTS = """
from pathlib import Path
from verl_tui.sources.formats import diary
from verl_tui.sources.ends import EndSource
path = Path("logs/my.diary")
end = EndSource(path, diary, 0, 1000)
end.read()
print(end.complete_from > 3900)
"""


def test_it_is_read_from_its_end(run: Callable[..., str]) -> None:
    assert run("-c", PARTS).strip() == "True"
