"""Diagnoses: failures that no single threshold shows. A class each, which names its `RULE`, an
entry in `guide.toml`; its words are an entry in `words.toml`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator


def _found() -> Iterator[type[Diagnosis]]:
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Diagnosis) and value.RULE:
                yield value


DIAGNOSES = {kind.RULE: kind for kind in _found()}
"""Unique name of its rule -> diagnosis, which reads its figures from its entry in `guide.toml`."""
