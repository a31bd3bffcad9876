"""Text with the role that colours it: rows are made of such pieces, widgets know the colours."""

Piece = tuple[str, str]
"""Text and its role, e.g. `("done", "good")`; an empty role is plain text."""
Pieces = list[Piece]
"""One row: its pieces from left to right."""
