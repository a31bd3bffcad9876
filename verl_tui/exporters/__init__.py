"""Take the data elsewhere: one module a target."""
