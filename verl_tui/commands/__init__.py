"""The commands, each one module named like it: `HELP` says what it takes, `run` carries it out.

A new module with these is a new command: help, completion and messages find it here. A command
imports what only it needs when it runs, so that each starts fast.
"""
