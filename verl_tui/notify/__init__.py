"""Messages to a chat, a phone or a program: what is told, when, and how it gets there."""
