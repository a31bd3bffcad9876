"""Settings on a console: the printed configuration, dumps of arguments, the command that started
the training.
"""

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
    *(
        "{'",
        "Namespace(",
        "Config(",
        "Arguments(",
        "Args(",
        " arguments ---",
        " overrides: [",
        "python",
        "torchrun",
    ),
    *("deepspeed", "accelerate launch", "swift ", "llamafactory-cli", "trl grpo", "trl rloo"),
    *("trl dpo", "trl ppo", "trl sft", "trl kto"),
)
"""One of them stands in the first line of a block; most lines have none, and that is found out
quickly.
"""
_MAY_BEGIN = any_of(WORDS)


_LOOKED_AT = 5000
"""Lines after a start in which settings are looked for: trainers state them first, and looking
costs time.
"""


class SettingsReader:
    """Reads settings wherever a console states them, until training has begun."""

    def __init__(self) -> None:
        self._config = PrintedConfig()
        self._others = (ArgumentDump(), LaunchCommand())
        self._until = _LOOKED_AT
        """Number of the last line that is looked at."""
        self.is_open = False
        """Whether a block has begun that may go on."""

    def begin(self, number: int) -> None:
        """Expect settings behind a line: the trainer has started, maybe once more."""
        self._until = number + _LOOKED_AT

    def end(self) -> Sequence[Record]:
        """Expect no more: a step was trained. Return what a block whose end was cut tells."""
        self._until, self.is_open = 0, False
        return self._config.close() if self._config.is_open else ()

    def holds(self, prefix: bytes, part: bytes) -> bool:
        """Tell whether a line belongs to a block of settings, so that it is nothing else."""
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
        self.is_open = self._config.is_open or any(block.is_open for block in self._others)
        return found
