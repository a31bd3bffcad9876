"""A file of a bundle before anything in it is masked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BundledFile:
    """A file of a bundle: a text, or data that become JSON."""

    name: str
    """Its path in the archive."""
    about: str
    """A few words for the list of contents."""
    content: Any
    """A text; else mappings, lists, texts and numbers."""

    @property
    def raw(self) -> str:
        """The text as it is, unmasked: names are learnt from it."""
        return as_text(self.content)


def as_text(content: Any) -> str:
    """Return a text as it is, data as JSON, which knows neither NaN nor infinity."""
    if isinstance(content, str):
        return content
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
