"""SMS messages: send, preview, list and read."""
