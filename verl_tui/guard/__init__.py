"""Following runs without a screen, and running a command when one goes wrong or does better than
before.
"""
