"""Screens of rows: a module each, which is all that another one takes."""
