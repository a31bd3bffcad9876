"""What is read only when a screen asks for it, in a thread of its own: samples and logs as text."""
