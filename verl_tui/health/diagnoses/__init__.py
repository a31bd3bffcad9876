"""Diagnoses: failures that no single threshold shows. A function each, declared as that of its rule
in `guide.toml`; its words are an entry in `words.toml`.
"""

from importlib import import_module
from pkgutil import iter_modules

from verl_tui.health.diagnosis import DIAGNOSES

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)

__all__ = ["DIAGNOSES"]
