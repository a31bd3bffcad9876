"""Views derived from a run: its state, its best, its identity, its devices."""
