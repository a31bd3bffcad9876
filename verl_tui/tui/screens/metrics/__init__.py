"""All metrics: charts by prefix, or a table."""
