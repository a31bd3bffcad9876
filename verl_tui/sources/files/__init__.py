"""Files as bytes, followed as they grow."""
