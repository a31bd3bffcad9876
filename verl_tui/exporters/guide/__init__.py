"""The guide in force for others: as text, as Prometheus' alert rules, as a Grafana dashboard."""

from verl_tui.exporters.guide.as_text import describe

__all__ = ["describe"]
