"""The guide in force for others: as text, as Prometheus' alert rules, as a Grafana dashboard."""
