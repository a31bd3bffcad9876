"""Versions of programs: installed where verl-tui runs, and those that the run itself states.

The two may be of different machines, so they are never mixed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import __version__
from verl_tui.patterns import pattern
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

_TABLE = toml_table(__file__, "packages.toml")
TRAINING, OWN = _TABLE["training"].split(), _TABLE["own"].split()
_ALSO: dict[str, str] = _TABLE["also"]
_WORDS = "|".join(
    re.escape(name).replace("\\-", "[-_]")
    for name in sorted((*TRAINING, *_ALSO), key=len)[::-1]
)
_MORE = r"(?:[.+a-zA-Z][\w.+]*)?"
_VERSION = rf"\d+\.\d+(?:\.\d+)?{_MORE}"
_STATED = pattern(
    rf"(?<![\w./-])({_WORDS})"
    rf"(?:(?:[ _-]version['\"]?\s?[:=]?|==| \()\s?['\"]?v?({_VERSION})"
    rf"|(?:['\"]?\s?[:=]|\s)\s?['\"]?v?(\d+\.\d+\.\d+{_MORE}))(?![\w%/])",
    re.IGNORECASE,
)
"""`vllm==0.8.5`, `"transformers_version": "4.51.1"`, `wandb version 0.19.9`, `LLM engine (v0.8.5)`;
without such a word a version has three parts: `torch 2.6.0`, as figures have two.
"""
_PYTHON = pattern(
    r"/(python)(3\.\d{1,2})/|\b(Python) (?:version:? )?(3\.\d{1,2}\.\d{1,2})\b"
)
_MOST_TEXT = 2**20


class StatedVersion(NamedTuple):
    """A version that a run states."""

    package: str
    version: str
    origin: str
    """The file, or the setting, that says so."""


def installed() -> dict[str, Any]:
    """Return the versions in this environment, which need not be that of the run."""
    found = {}
    for name in (*TRAINING, *OWN):
        with suppress(metadata.PackageNotFoundError, ValueError):
            found[name] = metadata.version(name)
    return {
        "verl-tui": __version__,
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "packages": found,
    }


def stated_versions(run: Run, texts: Mapping[str, str]) -> list[StatedVersion]:
    """Return the versions that a run's settings, lists of packages and logs state.

    Args:
        run: The run.
        texts: Beginnings and ends of its logs, by path.
    """
    unique: dict[tuple[str, str], StatedVersion] = {}
    for one in (*_in_settings(run), *_in_lists(run), *_in_texts(texts)):
        unique.setdefault((one.package, one.version), one)
    return sorted(unique.values())


def _in_settings(run: Run) -> Iterator[StatedVersion]:
    for key, value in run.settings.items():
        name, found, _ = key.rpartition(".")[2].lower().rpartition("_version")
        if found and name and re.fullmatch(_VERSION, str(value)):
            yield StatedVersion(_package(name), str(value), f"setting {one_line(key)}")


def _in_lists(run: Run) -> Iterator[StatedVersion]:
    """Yield the versions in the package lists that W&B leaves beside its log."""
    folders = {Path(path).parent for path in run.paths if path.endswith(".wandb")}
    for folder in sorted(folders):
        path = folder / "files" / "requirements.txt"
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            for line in file.read(_MOST_TEXT).splitlines():
                name, _, version = line.partition("==")
                if version and (package := _package(name)) in TRAINING:
                    yield StatedVersion(package, one_line(version, 60), str(path))


def _in_texts(texts: Mapping[str, str]) -> Iterator[StatedVersion]:
    for path, text in texts.items():
        name = PurePath(path).name
        for form in (_STATED, _PYTHON):
            for found in form.finditer(text[:_MOST_TEXT]):
                package, version = [one for one in found.groups() if one][:2]
                yield StatedVersion(_package(package), version.rstrip("."), name)


def _package(word: str) -> str:
    name = word.strip().lower().replace("_", "-")
    return _ALSO.get(name, name)
