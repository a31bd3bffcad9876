"""Sources behind HTTP: Prometheus servers and bare endpoints."""
