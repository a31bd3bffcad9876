"""Several runs compared with each other: figures, settings, groups of seeds, statistics."""
