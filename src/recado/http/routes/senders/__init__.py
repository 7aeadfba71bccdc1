"""Numbers."""
