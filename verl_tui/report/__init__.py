"""A report on runs in one file: verdicts, comparison, curves, findings, checkpoints, samples."""
