"""What tests of sources have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from file_writing import write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Make files from a mapping of paths to contents; a path that ends with a slash is a directory.
    Return the directory of them all.
    """

    def make(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                continue
            write_file(path, content)
        return tmp_path

    return make
