"""Examines what verl-tui makes of some paths, and of the machine and the terminal it runs on."""
