"""What fields of records say: steps, samples, rewards, devices, distributions, settings."""
