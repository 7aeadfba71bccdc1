"""The routes of social accounts."""
