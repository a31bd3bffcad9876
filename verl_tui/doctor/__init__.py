"""Examines how verl-tui reads some paths, and the machine and the terminal it runs on."""
