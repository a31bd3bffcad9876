"""Log formats, one module each; `catalog.py` lists them all, in the order of trying."""

from __future__ import annotations

HEAD = 128 * 1024
"""Bytes from which a format is recognised; verl prints its configuration first, its steps much
later.
"""
