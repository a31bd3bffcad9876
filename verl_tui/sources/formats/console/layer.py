"""A layer between a console's file and its decoder, which passes the decoder's facts on."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    @property
    def program(self) -> str | None:
        """The program that printed it."""
        return self.console.program

    @property
    def engines(self) -> tuple[str, ...]:
        """Addresses of the engines that it names."""
        return self.console.engines

    @property
    def reported(self) -> tuple[str, ...]:
        """The ids of the runs at W&B that it says it reports to, in their order."""
        return self.console.reported

    @property
    def counts_steps(self) -> bool:
        """True if steps depend on the lines before."""
        return bool(getattr(self.console, "counts_steps", False))

    @property
    def counts_most(self) -> bool:
        """True if most steps were counted."""
        return bool(getattr(self.console, "counts_most", False))

    @property
    def unread_form(self) -> str:
        """Say which lines look like metrics that cannot be read, where no step is known."""
        return str(getattr(self.console, "unread_form", ""))

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        return self.console.held()

    def caught_up(self) -> Iterable[MetricRow | Record]:
        """Return the records that wait for the end of a training that goes on."""
        return self.console.caught_up()

    def restart(self) -> Iterable[MetricRow | Record]:
        """Forget everything: the file starts anew."""
        return self.console.restart()
