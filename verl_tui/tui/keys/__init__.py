"""Keys and the commands they stand for: defaults, the user's own keys, and the command palette."""
