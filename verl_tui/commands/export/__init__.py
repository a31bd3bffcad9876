"""Write the data as CSV, for TensorBoard or for Prometheus.

for example:
    verl-tui export csv logs/run_7 -o run_7.csv
"""
