"""The kinds of `verl-tui export`, one module each with its name, help, options and run."""
