"""Settings on a console: the printed configuration, argument dumps, the training's command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.formats.console.argument_dump import ArgumentDump
from verl_tui.sources.formats.console.command_line import LaunchCommand
from verl_tui.sources.formats.console.printed_config import PrintedConfig
from verl_tui.sources.formats.console.word_search import any_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Record

WORDS = (
    "{'", "Namespace(", "Config(", "Arguments(", "Args(", " arguments ---", " overrides: [",
    "python", "torchrun", "deepspeed", "accelerate launch", "swift ", "llamafactory-cli",
    "trl grpo", "trl rloo", "trl dpo", "trl ppo", "trl sft", "trl kto",
)  # fmt: skip
"""The first line of every block of settings contains one of these."""
_MAY_BEGIN = any_of(WORDS)
_EXPECTED_WITHIN = 5000
"""Lines after a start in which settings are looked for, which is slow."""


class SettingsReader:
    """Reads the settings that a console states until training has begun."""

    def __init__(self) -> None:
        self._config = PrintedConfig()
        self._others = (ArgumentDump(), LaunchCommand())
        self._until = _EXPECTED_WITHIN
        """Number of the last line in which settings are looked for."""
        self.is_open = False
        """True if a block has begun and not ended."""

    def begin(self, number: int) -> None:
        """Expect settings behind a line: the trainer has started, maybe again."""
        self._until = number + _EXPECTED_WITHIN

    def end(self) -> Sequence[Record]:
        """Expect no more settings, as a step was trained; return those of an unfinished block."""
        self._until = 0
        self.is_open = False
        if not self._config.is_open:
            return ()
        return self._config.close()

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Return True if a line belongs to a block of settings."""
        if not self.is_open:
            return False
        return self._config.holds(prefix, part) or any(
            block.holds(prefix, part) for block in self._others
        )

    def read(self, prefix: bytes, part: bytes, number: int) -> Sequence[Record]:
        """Take a line; return the settings that it completes.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
            number: Its number.
        """
        if number > self._until or not (self.is_open or _MAY_BEGIN.search(part)):
            self.is_open = False
            return ()
        found = list(self._config.feed(prefix, part, number))
        for block in self._others:
            found += block.feed(prefix, part)
        self.is_open = self._config.is_open or any(
            block.is_open for block in self._others
        )
        return found
