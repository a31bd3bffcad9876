"""From the paths a user names to runs: what files are, which belong together, what they are
called.
"""
