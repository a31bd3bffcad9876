"""A training run: its series, its samples, its settings, its state."""
