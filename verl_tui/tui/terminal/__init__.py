"""The one place that knows Textual's inside: its driver, compositor, styles and key handling."""
