"""Blocks of several lines on verl's console: the printed configuration, and samples as reward managers print them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from verl_tui.records import Sample, Settings
from verl_tui.sources.jsonl import number
from verl_tui.sources.sample import LONGEST_TEXT
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_CONFIG = 3000
_LONGEST_SAMPLE = 2000
"""Lines after which a block that did not end is given up."""
_QUOTED = re.compile(rb"'[^']*'|\"[^\"]*\"")
_LITERAL = re.compile(rb"^ +['\"{(\[\-\d]")
_OBJECT = re.compile(r"(?<=: )(?:<[^<>]*>|nan|inf|-inf)(?=[,}\n])")
"""Values that are no literals, as `repr` writes them."""
_FIELD = re.compile(rb"^\[(prompt|response|ground_truth|score)\] ?")


class ConfigBlock:
    """Collects the configuration that verl prints with `pprint` at its start (verl/trainer/main_ppo.py)."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._prefix = b""
        self._depth = 0
        """Braces still open."""
        self._done = False

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Tell whether a line belongs to the block: same actor, indented, a literal. Bars and warnings come between."""
        return bool(self._lines) and prefix == self._prefix and _LITERAL.match(part) is not None

    def feed(self, prefix: bytes, part: bytes) -> Settings | None:
        """Take a line; return the settings with the block's last one."""
        if self._done or (self._lines and not self.holds(prefix, part)):
            return None
        if not self._lines and not (part.startswith(b"{'") and part.rstrip().endswith((b",", b"}"))):
            return None
        self._prefix = prefix
        self._lines.append(part)
        bare = _QUOTED.sub(b"", part)
        self._depth += bare.count(b"{") - bare.count(b"}")
        if self._depth <= 0 or len(self._lines) > _LONGEST_CONFIG:
            return self._close()
        return None

    def _close(self) -> Settings | None:
        text = b"\n".join(self._lines).decode("utf-8", "replace")
        self._lines, self._depth = [], 0
        try:
            config = ast.literal_eval(_OBJECT.sub("None", text))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
        if not isinstance(config, dict) or not any(isinstance(value, dict) for value in config.values()):
            return None
        self._done = True
        return Settings(flatten_settings(config), "console")


def flatten_settings(config: Mapping[Any, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Return a nested configuration as one level, with dots between the names; text is made safe."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = safe(f"{prefix}.{key}" if prefix else str(key), 300)
        if isinstance(value, dict) and depth < 40:
            flat.update(flatten_settings(value, name, depth + 1))
        else:
            flat[name] = plain_setting(value)
    return flat


def plain_setting(value: object) -> bool | float | str | None:
    """Return a setting as what a run keeps: text made safe, a whole number beyond 64 bits as a float."""
    if isinstance(value, int) and value.bit_length() > 64:
        return number(value)
    return value if isinstance(value, bool | int | float | None) else safe(str(value), 1000)


class SampleBlock:
    """Collects `[prompt] … [response] … [ground_truth] … [score] …` (verl's reward managers, `num_examine`)."""

    def __init__(self) -> None:
        self._prefix = b""
        self._fields: dict[str, list[bytes]] = {}
        self._field: str | None = None
        self._count = 0

    def holds(self, prefix: bytes) -> bool:
        """Tell whether a line of this actor is part of a sample: a model wrote it."""
        return self._field is not None and prefix == self._prefix

    def leave(self) -> None:
        """Give the block up: a step line shows that it is over."""
        self._fields, self._field, self._count = {}, None, 0

    def feed(self, prefix: bytes, part: bytes, step: int | None) -> Sample | None:
        """Take a line; return the sample with its last one.

        Args:
            prefix: Names the actor that printed the line.
            part: The line.
            step: Last step seen; the sample belongs to the one after it.
        """
        found = _FIELD.match(part) if part.startswith(b"[") else None
        if found is not None:
            field = found.group(1).decode()
            if field == "prompt":
                self.leave()
                self._prefix = prefix
            elif self._field is None or prefix != self._prefix:
                return None
            self._field = field
            part = part[found.end() :]
        elif not self.holds(prefix):
            return None
        assert self._field is not None
        self._count += 1
        if self._count > _LONGEST_SAMPLE:
            self.leave()
            return None
        self._fields.setdefault(self._field, []).append(part)
        return self._sample(step) if self._field == "score" else None

    def _sample(self, step: int | None) -> Sample | None:
        prompt, response, truth, score = (self._text(name) for name in ("prompt", "response", "ground_truth", "score"))
        has_response = "response" in self._fields
        self.leave()
        if not has_response:
            return None
        try:
            value = float(score)
        except ValueError:
            value = None
        return Sample(None if step is None else step + 1, prompt, response, value, truth or None)

    def _text(self, field: str) -> str:
        return safe(b"\n".join(self._fields.get(field, ())).decode("utf-8", "replace"), LONGEST_TEXT)
