"""Timing: where a step's time goes, what it yields, when the run is done."""
