"""Configuration: who the run is, every setting with where it was read; `d` the difference to other
runs, `/` filters, `y` copies.
"""
