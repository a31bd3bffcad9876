"""Times of a run: when it took its steps, how long they took, when it will be done."""
