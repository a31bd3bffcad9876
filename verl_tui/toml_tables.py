"""The project's own tables of knowledge: TOML files that lie beside the module that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli


def toml_table(module: str, name: str) -> dict[str, Any]:
    """Return what a table says.

    Args:
        module: The file of the module beside which it lies, `__file__`.
        name: Its name, e.g. `guide.toml`.
    """
    text = Path(module).with_name(name).read_text(encoding="utf-8")
    found: dict[str, Any] = tomli.loads(text)
    return found
