"""The message of the shared cursor, at which all charts, samples and logs are read."""

from __future__ import annotations

from textual.message import Message


class MoveCursor(Message):
    """All parts of the screen are to show another step."""

    def __init__(self, step: int | None) -> None:
        """Make the message.

        Args:
            step: The step, None for the newest.
        """
        self.step = step
        super().__init__()
