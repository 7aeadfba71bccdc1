"""The service itself, and its pages of problems."""
