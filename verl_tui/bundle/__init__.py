"""Evidence for a bug report in one piece: all that is known of a run, masked and bounded."""
