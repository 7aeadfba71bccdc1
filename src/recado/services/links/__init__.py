"""What follows from a link that somebody opens."""
