"""Sources: how each file is doing, and every line that could not be read."""
