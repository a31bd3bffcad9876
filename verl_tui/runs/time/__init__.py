"""When a run took its steps, how long they took, and when it will be done."""
