"""Customer events as rows."""
