"""Lists and segments."""
