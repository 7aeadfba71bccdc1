"""Links that people follow: those that bring them to a chat, and those in messages."""
