"""A log as rows to read: kinds of lines, repeated lines folded, the rows in sight."""
