"""`verl-tui export`: runs written for other programs, one module each."""

HELP = """
Write the data as CSV, for TensorBoard or for Prometheus.

for example:
    verl-tui export csv logs/run_7 -o run_7.csv
"""
