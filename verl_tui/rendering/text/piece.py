"""Pieces of text with roles, which widgets colour; a row is a list of them."""

Piece = tuple[str, str]
"""Text and its role, e.g. `("done", "good")`; an empty role is plain text."""
Pieces = list[Piece]
"""One row: its pieces from left to right."""
