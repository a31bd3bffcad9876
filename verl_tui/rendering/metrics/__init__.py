"""All metrics of a run: which are listed, in what order and groups, and what a table says of
each.
"""
