"""The one cursor that all charts, samples and logs are read at."""

from __future__ import annotations

from textual.message import Message


class MoveCursor(Message):
    """Everything is to be looked at as it was at another step."""

    def __init__(self, step: int | None) -> None:
        """Make the message.

        Args:
            step: The step, None for the newest.
        """
        self.step = step
        super().__init__()
