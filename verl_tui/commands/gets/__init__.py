"""What `verl-tui get` answers, one module each with its name, help, options and run."""
