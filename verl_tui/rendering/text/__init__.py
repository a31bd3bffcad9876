"""Text in terminal cells: made safe to print, wrapped, shortened, and pictures one row high."""
