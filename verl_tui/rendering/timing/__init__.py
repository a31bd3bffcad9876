"""The timing of a run as rows: parts of a step, progress and ETA, throughput, the newest steps."""
