"""Several runs held against each other: figures, settings, groups of seeds, statistics."""
