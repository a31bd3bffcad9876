"""Read samples and logs on demand, in a thread of its own."""
