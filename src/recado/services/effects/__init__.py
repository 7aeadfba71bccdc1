"""What follows from moves, in their commit."""
