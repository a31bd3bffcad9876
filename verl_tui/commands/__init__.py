"""The commands, each one module that says its name, help and options, and runs.

A new module with these is a new command: help, completion and messages find it here. A command
imports what only it needs when it runs, so that each starts fast.
"""
