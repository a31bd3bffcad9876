"""Messages to a chat, a phone or a program: what is sent, when, and how it gets there."""
