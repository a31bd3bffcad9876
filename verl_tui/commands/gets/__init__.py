"""The answers of `verl-tui get`, one module each with its name, help, options and run."""
