"""Messages, one or many by one request."""
