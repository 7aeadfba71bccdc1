"""The chat-app channel: one file per provider."""
