"""trackio's databases."""
