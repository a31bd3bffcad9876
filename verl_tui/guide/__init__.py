"""The guide in force for others: as text, as Prometheus' alert rules, as a Grafana dashboard."""

from verl_tui.guide.words import describe

__all__ = ["describe"]
