"""The samples screen and panel: filter, order, marks in texts, rows."""
