"""Settings on the command line of a training: Hydra's overrides `a.b=1`, arguments `--lr 1e-6`.

The command is on the console if a shell traces it (`set -x`), a script prints it, or Hydra reports
a failure (`Error executing job with overrides: […]`); W&B keeps it in `wandb-metadata.json`.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import LAUNCH, Settings
from verl_tui.sources.fields.setting_values import flatten_settings, scalar
from verl_tui.sources.formats.console.printed_config import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 2**16
"""Bytes after which an unfinished command is given up."""
_LAUNCH = pattern(
    rb"(?:^|[\s`'\"/])(?:python[\d.]*|torchrun|deepspeed|accelerate launch|swift (?:rlhf|sft)"
    rb"|llamafactory-cli train|trl (?:grpo|rloo|dpo|ppo|sft|kto))[ \\]"
)
_FAILED = pattern(rb"^Error executing job with overrides: (\[.*\])\s*$")
_OVERRIDE = pattern(r"[+~]{0,2}([A-Za-z_][\w./@-]*)=(?!=)(.*)", re.DOTALL)
_OPTION = pattern(r"--([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_LEAST = 3
"""Fewest settings of a training's command (a heuristic)."""


class LaunchCommand:
    """Collects a command over several lines, all but the last ending with a backslash."""

    def __init__(self) -> None:
        self._text = b""
        self._prefix = b""

    @property
    def is_open(self) -> bool:
        """True if a command has begun and not ended."""
        return bool(self._text)

    def holds(self, prefix: bytes, part: bytes) -> bool:  # noqa: ARG002 - as all blocks of settings
        """Return True if a line continues the command."""
        return bool(self._text) and prefix == self._prefix

    def feed(self, prefix: bytes, part: bytes) -> Sequence[Settings]:
        """Take a line; return the settings with the command's last one."""
        if self._text:
            if not self.holds(prefix, part):
                return ()
            return self._go_on(part)
        failed = _FAILED.match(part) if len(part) <= _LONGEST else None
        if failed is not None:
            listed = literal(failed[1].decode("utf-8", "replace"))
            if not isinstance(listed, list):
                return ()
            return settings_of(listed)
        if _LAUNCH.search(part) is None:
            return ()
        self._prefix = prefix
        return self._go_on(part)

    def _go_on(self, part: bytes) -> Sequence[Settings]:
        line = part.rstrip()
        if line.endswith(b"\\") and len(self._text) < _LONGEST:
            self._text += line[:-1] + b" "
            return ()
        text = (self._text + line)[:_LONGEST]
        self._text = b""
        return settings_of(_words(text.decode("utf-8", "replace")))


def settings_of(words: Sequence[object]) -> tuple[Settings, ...]:
    """Return the settings in the words of a command, () if too few for that of a training."""
    values = _values([str(word) for word in words])
    if len(values) < _LEAST:
        return ()
    return (Settings(values, LAUNCH),)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text.strip(" `+"))
    except ValueError:  # a quote that is never closed
        return text.split()


def _values(words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    option: str | None = None
    for word in words:
        if found := _OPTION.fullmatch(word):
            name, value = found.groups()
            if value is None:
                option = name
                values[name] = True
            else:
                option = None
                values[name] = scalar(value)
        elif option is not None and not word.startswith("-m"):
            values[option] = scalar(word)
            option = None
        elif found := _OVERRIDE.fullmatch(word):
            values[found[1]] = scalar(found[2])
    return flatten_settings(values)
