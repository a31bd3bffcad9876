"""Select the entries of a directory that may belong to a run, by their names and links."""

from __future__ import annotations

import os
from operator import attrgetter, methodcaller
from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.sources.discovery.found import WANDB, wandb_id
from verl_tui.sources.discovery.name_classes import NameClass, classify_name
from verl_tui.sources.files.checkpoint_names import HOMES, checkpoint_step
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.setting_files import NAMES as SETTINGS

_OURS = "verl-tui"
_EXPORTED = pattern(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""Files that verl-tui exported: read only if the user names them."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages", *HOMES}


def entries_of(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, none where it cannot be read."""
    try:
        return list_entries(directory)
    except OSError:
        return []


def list_entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last; raise OSError if it is unreadable."""
    with os.scandir(directory) as entries:
        logs = [entry for entry in entries if not _is_exported(entry.name)]
    logs.sort(key=attrgetter("name"))
    # Links last: a run gets its own name, not `latest`.
    logs.sort(key=methodcaller("is_symlink"))
    return logs


def _is_exported(name: str) -> bool:
    return _OURS in name and _EXPORTED.fullmatch(name) is not None


def is_relevant(entry: os.DirEntry[str]) -> bool:
    """True if an entry may belong to a run, by its name alone: making a path costs more."""
    return (
        entry.name in SETTINGS
        or classify_name(entry.name) is not NameClass.OTHER
        or is_folder(entry)
    )


def leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """True if a link leads to a place inside or above `top`, or to a checkpoint."""
    try:
        target = Path(link.path).resolve()
    except (OSError, RuntimeError):
        return False
    whole = top.resolve()
    within = whole in target.parents and not any(
        part.startswith(".") for part in target.relative_to(whole).parts
    )
    return (
        within
        or target in (whole, *whole.parents)
        or checkpoint_step(target.name) is not None
    )


def is_skipped(name: str) -> bool:
    """True if a directory is not entered because of its name."""
    return name.startswith(".") or name in _SKIPPED or checkpoint_step(name) is not None


def is_bookkeeping(path: Path) -> bool:
    """True for W&B's own bookkeeping: `wandb/debug.log`, `wandb/run-…/logs`."""
    own = (
        path.name.startswith("debug")
        and path.suffix == ".log"
        and path.parent.name == WANDB
    )
    own = own or (
        path.name in ("wandb-summary.json", "wandb-metadata.json")
        and path.parent.name == "files"
    )
    return own or (path.name == "logs" and wandb_id(path.parent) is not None)
