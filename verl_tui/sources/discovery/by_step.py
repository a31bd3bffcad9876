"""Formats with one file per step: dumps and tables, where a directory is one source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders import completion_tables as tables
from verl_tui.sources.folders import dumps
from verl_tui.sources.formats import parquet, rollouts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.discovery.probing import Probe
    from verl_tui.sources.formats.format import Format


class _StepFiles(NamedTuple):
    """A format with one file for each step."""

    format: Format
    step_of: Callable[[str], int | None]
    """Returns the step in a file's name, None if it names none."""
    all: str
    """Stands for all files of a directory in the name of its source."""


_STEP_FILES = (
    _StepFiles(rollouts, rollouts.dump_step, dumps.ALL),
    _StepFiles(parquet, parquet.table_step, tables.ALL),
)


def is_of_a_step(name: str) -> bool:
    """Return by its name whether a file may hold the samples of one step."""
    return any(files.step_of(name) is not None for files in _STEP_FILES)


def formats(directory: Path, names: Sequence[str], probe: Probe) -> list[Format]:
    """Return the formats that a directory is a source of, by the first file that can be read."""
    found = []
    for files in _STEP_FILES:
        paths = [directory / name for name in names if files.step_of(name) is not None]
        known = filter(None, map(probe.known, paths))
        if any(one.format is files.format for one in known):
            found.append(files.format)
    return found


def source_path(file: FoundFile) -> Path:
    """Return the path of a source: for a directory, one that stands for its files, since the
    directory may be a source itself.
    """
    if is_folder(file.path):
        return next(
            (
                file.path / files.all
                for files in _STEP_FILES
                if files.format is file.format
            ),
            file.path,
        )
    return file.path
