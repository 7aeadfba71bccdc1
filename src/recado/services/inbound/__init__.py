"""What providers report."""
