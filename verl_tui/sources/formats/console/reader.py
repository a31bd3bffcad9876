"""The console format: which files are one, and their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.files.binary import is_binary
from verl_tui.sources.formats.console import blocks, kept, unknown
from verl_tui.sources.formats.console.dicts import hinted
from verl_tui.sources.formats.console.kept import KeptDecoder
from verl_tui.sources.formats.console.step_lines import STEP, SURE
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.lines import LineReader, line_begin

if TYPE_CHECKING:
    from pathlib import Path

name = "console"
rank = 3
anchor = True

_TELLING = 1024
"""Bytes that tell text from other data; behind them a model may have written any."""
_KNOWN = (
    b"step:",
    b"(TaskRunner",
    b"(main_task",
    b"(WorkerDict",
    b"Training Progress",
    b"verl.",
    b"actor_rollout_ref",
    b"Started a local Ray instance",
    b"Total training steps",
    b"validation generation end",
)
_ENOUGH = 3
"""Records that make a text a console whatever its name; documents quote one."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the beginning of a text file looks like a training's console."""
    known = (
        any(mark in head for mark in _KNOWN)
        or hinted(head)
        or hinted(kept.as_printed(head))
        or _has_blocks(head)
    )
    return known and not is_binary(head[:_TELLING])


def is_sure(head: bytes) -> bool:
    """Return whether a text holds so many records that it is a console, whatever it is called."""
    lines = (kept.as_printed(head) or head).split(b"\n")
    return sum(map(_is_record, lines)) >= _ENOUGH or _has_blocks(head)


def _is_record(line: bytes) -> bool:
    if STEP.search(line) is not None:
        return line.count(b" - ") >= SURE
    return hinted(line)


def _has_blocks(head: bytes) -> bool:
    text = kept.as_printed(head) or head
    return blocks.finds(text) or unknown.form_in(text) is not None


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(KeptDecoder())


parts = Parts(line_begin, lambda *_: LineReader(KeptDecoder()), cut=2)
"""Dicts that state no step have that of a bar around them."""
