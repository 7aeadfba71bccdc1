"""What customers did, as the systems of callers tell it, and which message is credited with it."""
