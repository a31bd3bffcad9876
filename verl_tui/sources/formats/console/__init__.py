"""Consoles: verl's step lines, other trainers' dicts, and everything else that a training
prints.
"""
