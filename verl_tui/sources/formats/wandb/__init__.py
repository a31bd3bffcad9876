"""W&B's transaction log and its tables."""
