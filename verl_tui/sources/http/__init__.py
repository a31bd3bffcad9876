"""Sources behind HTTP: Prometheus servers, bare endpoints, and engines that a console names."""
