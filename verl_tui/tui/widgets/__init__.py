"""Draw numbers and text; know no run."""
