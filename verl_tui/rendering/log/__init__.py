"""A console as rows to read: what its lines are, which belong together, what is in sight. No
widgets.
"""
