"""All metrics of a run: filter, groups, order and table rows."""
