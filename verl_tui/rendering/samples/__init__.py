"""What the samples screen is made of: filter, order, marks in texts, rows. Pure functions, no
Textual.
"""
