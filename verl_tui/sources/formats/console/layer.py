"""A layer between a console's file and its decoder, which passes the decoder's facts on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow
    from verl_tui.sources.formats.format import BufferingDecoder


class ConsoleLayer:
    """Restores the lines of a console and hands them to its decoder."""

    def __init__(self, console: BufferingDecoder) -> None:
        """Begin.

        Args:
            console: Decodes the lines as they were printed.
        """
        self.console = console

    @property
    def note(self) -> str | None:
        """A sentence about the console for the list of sources, None for most."""
        return self.console.note

    def __getattr__(self, name: str) -> Any:
        """Return what the console says of itself: its program, its engines, and the like."""
        if name == "console":  # not there yet in a copy that is being made
            raise AttributeError(name)
        return getattr(self.console, name)

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        return self.console.held()

    def caught_up(self) -> Iterable[MetricRow | Record]:
        """Return the records that wait for the end of a training that goes on."""
        return self.console.caught_up()

    def restart(self) -> Iterable[MetricRow | Record]:
        """Forget everything: the file starts anew."""
        return self.console.restart()
