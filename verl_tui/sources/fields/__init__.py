"""Readers of single fields: steps, samples, rewards, devices, distributions, settings."""
