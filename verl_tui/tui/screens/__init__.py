"""Whole screens, composed of panels.

A screen that a key opens over the dashboard says so: `SCREEN` of its class has its key, its name in
the configuration of keys, its words in the help and in the command palette, and the one in the last
row of the dashboard, where it is named there. All these modules are imported at the start; what
takes long to import, such as numpy, is imported where it is needed.
"""
