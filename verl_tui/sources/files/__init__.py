"""Files as bytes: followed as they grow, compressed or rotated."""
