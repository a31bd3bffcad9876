"""Which entries of a directory may belong to a run, as far as names and links tell."""

from __future__ import annotations

import os
import re
from pathlib import Path

from verl_tui.sources.discovery.found import WANDB, wandb_id
from verl_tui.sources.discovery.probing import Name, kind
from verl_tui.sources.files.checkpoint_names import HOMES, checkpoint_step
from verl_tui.sources.files.paths import is_folder
from verl_tui.sources.folders.settings import NAMES as SETTINGS

_EXPORTED = re.compile(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""What was written here: samples, tables, the screen as text, event files. Read only where it is
named.
"""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages", *HOMES}


def entries_of(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, none where it cannot be read."""
    try:
        return listed(directory)
    except OSError:
        return []


def listed(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last; raise OSError where it cannot be
    read.
    """
    with os.scandir(directory) as entries:
        # What is there goes before links to it: a run is called what it is called, not `latest`.
        logs = (entry for entry in entries if not _EXPORTED.fullmatch(entry.name))
        return sorted(logs, key=lambda entry: (entry.is_symlink(), entry.name))


def may_tell(entry: os.DirEntry[str]) -> bool:
    """Tell from its name whether something may belong to a run; paths of all that does not are
    never made.
    """
    return entry.name in SETTINGS or kind(entry.name) is not Name.OTHER or is_folder(entry)


def leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """Tell whether a link leads to what is looked at anyway, or to a checkpoint, or round to where
    one comes from.
    """
    try:
        target = Path(link.path).resolve()
    except (OSError, RuntimeError):
        return False
    whole = top.resolve()
    within = whole in target.parents and not any(
        part.startswith(".") for part in target.relative_to(whole).parts
    )
    return within or target in (whole, *whole.parents) or checkpoint_step(target.name) is not None


def skipped(name: str) -> bool:
    """Tell from its name whether a directory is not looked into."""
    return name.startswith(".") or name in _SKIPPED or checkpoint_step(name) is not None


def is_bookkeeping(path: Path) -> bool:
    """Tell whether a path is W&B's own bookkeeping: `wandb/debug.log`, `wandb/run-…/logs`."""
    own = path.name.startswith("debug") and path.suffix == ".log" and path.parent.name == WANDB
    own = own or (
        path.name in ("wandb-summary.json", "wandb-metadata.json") and path.parent.name == "files"
    )
    return own or (path.name == "logs" and wandb_id(path.parent) is not None)
