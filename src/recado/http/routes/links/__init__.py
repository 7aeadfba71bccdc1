"""Links: those that callers make, and those that people open."""
