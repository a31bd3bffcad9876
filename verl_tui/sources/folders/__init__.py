"""Directories with a file a step: dumps, tables of completions, checkpoints; and the settings
beside a log.
"""
