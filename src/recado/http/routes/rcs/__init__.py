"""RCS messages: send, list and read."""
