"""All samples of the step that the charts' cursor, the finding or the samples panel is at."""
