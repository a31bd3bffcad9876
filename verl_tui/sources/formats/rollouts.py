"""Rollout and validation dumps: `{step}.jsonl`, one sample a line (verl
`trainer.rollout_data_dir`).

Directories of them are read by `verl_tui.sources.folders.dumps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from verl_tui.patterns import NamePattern
from verl_tui.sources.fields.jsonl import first_object
from verl_tui.sources.fields.sample import read_sample
from verl_tui.sources.files import opened
from verl_tui.sources.formats.format import WholeReader
from verl_tui.trainers import SampleFiles, trainers

name = "rollout dump"
rank = 7  # the figures of all samples go before those of the few that trainers show
anchor = False
_LOOKED_AT = 8
"""Newest folders of steps in which a dump is looked for: many are those of checkpoints; and files
of each.
"""
VERL = SampleFiles(
    NamePattern(r"(?P<step>[0-9]{1,15})\.jsonl"), frozenset(), validation="named"
)
LAYOUTS = (*(files for one in trainers() for files in one.samples), VERL)
_HEAD = 256 * 1024
"""Bytes at a file's beginning that tell whose it is."""


def step_in(name: str, layouts: Iterable[SampleFiles] = LAYOUTS) -> int | None:
    """Return the step in the name of a dump, or of the folder of a step's; None if it is none."""
    found = next(filter(None, (one.name.fullmatch(name) for one in layouts)), None)
    return int(found["step"]) if found else None


def place_of(path: Path) -> tuple[SampleFiles, Path] | None:
    """Return the layout of a file that is a dump by its name and those of its folders, and the file
    or folder of its step.
    """
    for layout in LAYOUTS:
        depth = layout.inner.count("/") + 1 if layout.inner else 0
        if depth >= len(path.parents):
            continue
        top = path.parents[depth - 1] if depth else path
        fits = not depth or fnmatch(str(path.relative_to(top)), layout.inner)
        if fits and layout.name.fullmatch(top.name) and _holds(path, layout):
            return layout, top
    return None


def _holds(path: Path, layout: SampleFiles) -> bool:
    try:
        with opened(path) as file:
            return holds(file.read(_HEAD), layout)
    except OSError:
        return layout is VERL


def holds(text: bytes, layout: SampleFiles) -> bool:
    """Return whether a file that begins so holds samples as they are in a layout. verl's have the
    fields that a user wants, and may not be there yet.
    """
    if layout is VERL:
        return not any(holds(text, one) for one in LAYOUTS if one is not VERL)
    return all(f'"{field}"'.encode() in text for field in layout.has)


def layout_in(directory: Path, names: Iterable[str]) -> SampleFiles | None:
    """Return how the dumps lie in a directory with these entries, None if it has none."""
    listed = sorted(names, reverse=True)
    for layout in LAYOUTS:
        steps = [name for name in listed if layout.name.fullmatch(name)]
        for name in steps if not layout.inner else steps[:_LOOKED_AT]:
            files = files_of(directory / name, layout)
            if any(_holds(file, layout) for file in files[:_LOOKED_AT]):
                return layout
    return None


def files_of(step: Path, layout: SampleFiles) -> list[Path]:
    """Return the files of a step, in the order of their names."""
    return sorted(step.glob(layout.inner)) if layout.inner else [step]


def files_in(step: Path) -> tuple[SampleFiles, list[Path]]:
    """Return how the samples lie in the folder of a step, and its files."""
    layouts = (one for one in LAYOUTS if one.inner and one.name.fullmatch(step.name))
    found = ((one, files_of(step, one)) for one in layouts)
    return next((one for one in found if one[1]), (VERL, []))


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file is named by its step and holds samples."""
    first = first_object(head)
    holds_samples = first is None or read_sample(first) is not None
    return holds_samples and place_of(path) is not None


reader = WholeReader
