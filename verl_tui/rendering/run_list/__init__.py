"""The list of runs as rows: order, filter, and what each entry says."""
