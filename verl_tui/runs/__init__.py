"""What is known of a training run: its series, its samples, its state."""
