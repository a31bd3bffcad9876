"""Simulated trainings that write real logs, for `verl-tui demo`, screenshots and tests."""

from verl_tui.demo.simulation import HISTORY, PACE_S, Simulation

__all__ = ["HISTORY", "PACE_S", "Simulation"]
