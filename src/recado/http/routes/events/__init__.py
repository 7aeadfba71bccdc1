"""Customer events: posted and listed."""
