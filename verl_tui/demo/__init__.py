"""Simulated trainings that write real logs, for `verl-tui demo`, screenshots and tests."""
