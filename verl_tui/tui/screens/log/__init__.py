"""Log: the console as text, at the line of the chosen finding or at the cursor's step."""
