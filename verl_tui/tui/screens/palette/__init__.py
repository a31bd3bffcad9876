"""The command palette: a screen that searches all actions by name."""
