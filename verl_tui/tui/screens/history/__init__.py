"""Finding history: what was raised and cleared, at which steps."""
