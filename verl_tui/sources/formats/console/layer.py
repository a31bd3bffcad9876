"""What stands between a console's file and its decoder: restores the lines that were printed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow
    from verl_tui.sources.formats.format import BufferingDecoder


class ConsoleLayer(ABC):
    """Restores lines while they may need it; passes on all else, and the decoder's facts."""

    def __init__(self, console: BufferingDecoder) -> None:
        """Begin.

        Args:
            console: Decodes the lines as they were printed.
        """
        self.console = console
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Forget everything."""

    @abstractmethod
    def _restores(self, line: bytes) -> bool:
        """Return whether a line may have to be restored; where not, no later one has to."""

    @abstractmethod
    def _read(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of the lines that this one completes."""

    def __getattr__(self, name: str) -> Any:
        """Return what the decoder says and does without the layer."""
        if name == "console":  # not there yet in a copy that is being made
            raise AttributeError(name)
        return getattr(self.console, name)

    def decode_all(self, text: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        out: list[MetricRow | Record] = []
        at = 0
        while at < len(text):
            end = text.index(b"\n", at)
            if not self._restores(line := text[at:end]):
                out.extend(self.console.decode_all(text[at:], number))
                break
            out.extend(self._read(line, number))
            at = end + 1
            number += 1
        return out

    def decode(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of one line, or of a part of it."""
        if self._restores(line):
            return self._read(line, number)
        return self.console.decode(line, number)

    # Since Python 3.12 `isinstance` of a protocol sees no attribute that `__getattr__` alone gives.

    def early(self, line: bytes) -> int:
        """Return how many bytes of a line that has no end yet can be decoded."""
        return self.console.early(line)

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        return self.console.held()

    def caught_up(self) -> Iterable[MetricRow | Record]:
        """Return the records that wait for the end of a training that goes on."""
        return self.console.caught_up()

    def restart(self) -> Iterable[MetricRow | Record]:
        """Forget everything: the file starts anew."""
        self._begin()
        return self.console.restart()
