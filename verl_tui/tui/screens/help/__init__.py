"""Help: all keys, the screen in front first, with the names that `[keys]` takes, and the meaning of
the signs in charts.
"""
