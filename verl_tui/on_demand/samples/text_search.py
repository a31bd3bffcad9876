"""A search in the texts of a step's samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.records import Sample


class TextMatcher(Protocol):
    """A condition for rows."""

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if the texts of a row match."""
        ...


@dataclass(frozen=True, slots=True)
class PlainText:
    """A literal text; case counts if it has capitals."""

    text: str

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if one of the texts contains it."""
        fold = self.text == self.text.lower()
        return any(self.text in (text.lower() if fold else text) for text in texts)


@dataclass(slots=True)
class Hits:
    """Result of a search so far."""

    query: TextMatcher
    rows: list[int] = field(default_factory=list)
    """Indices of matching rows, ascending."""
    searched: int = 0
    """Number of rows searched."""
    complete: bool = False
    """True once all rows have been searched."""

    def look(self, rows: Iterable[tuple[int, Iterable[str]]]) -> None:
        """Search further rows, given as index and texts."""
        for index, texts in rows:
            if self.query.found(texts):
                self.rows.append(index)
            self.searched = index + 1


def all_text(sample: Sample) -> Iterator[str]:
    """Yield the texts of a sample that are searched."""
    yield from (sample.prompt, sample.response, sample.ground_truth or "")
    yield from (value for value in sample.extras.values() if isinstance(value, str))
