"""Titled parts of the screen: each reads the view it is given and draws it. No panel knows
another.
"""
