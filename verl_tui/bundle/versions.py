"""Versions of programs: installed where verl-tui runs, and those that the run itself states.

The two may be of different machines, so they are never mixed.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import __version__
from verl_tui.patterns import pattern
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
    r"/python(3\.\d{1,2})/|\bPython (?:version:? )?(3\.\d{1,2}\.\d{1,2})\b"
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
    found = {name: _installed(name) for name in (*TRAINING, *OWN)}
    return {
        "verl-tui": __version__,
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "packages": {
            name: version for name, version in found.items() if version is not None
        },
    }


def stated_versions(run: Run, texts: Mapping[str, str]) -> list[StatedVersion]:
    """Return the versions that a run's settings, lists of packages and logs state.

    Args:
        run: The run.
        texts: Beginnings and ends of its logs, by path.
    """
    found = [*_in_settings(run), *_in_lists(run)]
    for path, text in texts.items():
        found += _in_text(text[:_MOST_TEXT], path)
    unique: dict[tuple[str, str], StatedVersion] = {}
    for one in found:
        unique.setdefault((one.package, one.version), one)
    return sorted(unique.values())


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _in_settings(run: Run) -> Iterator[StatedVersion]:
    for key, value in run.settings.items():
        last = key.rpartition(".")[2].lower()
        name, _, rest = last.rpartition("_version")
        if (
            not rest
            and name
            and isinstance(value, str)
            and re.fullmatch(_VERSION, value)
        ):
            yield StatedVersion(_package(name), value, f"setting {one_line(key)}")


def _in_lists(run: Run) -> Iterator[StatedVersion]:
    """Yield the versions in the package lists that W&B leaves beside its log."""
    folders = (Path(path).parent for path in run.paths if path.endswith(".wandb"))
    for folder in dict.fromkeys(folders):
        path = folder / "files" / "requirements.txt"
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                lines = file.read(_MOST_TEXT).splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, version = line.partition("==")
            if version and _package(name) in TRAINING:
                yield StatedVersion(_package(name), one_line(version, 60), str(path))


def _in_text(text: str, path: str) -> Iterator[StatedVersion]:
    name = PurePath(path).name
    for found in _STATED.finditer(text):
        yield StatedVersion(
            _package(found[1]), (found[2] or found[3]).rstrip("."), name
        )
    for found in _PYTHON.finditer(text):
        yield StatedVersion("python", found[1] or found[2], name)


def _package(word: str) -> str:
    name = word.strip().lower().replace("_", "-")
    return _ALSO.get(name, name)


def versions_line(found: Iterable[StatedVersion]) -> str:
    """Return the versions in a line: `torch 2.6.0, vllm 0.8.5`."""
    return ", ".join(f"{one.package} {one.version}" for one in found)
