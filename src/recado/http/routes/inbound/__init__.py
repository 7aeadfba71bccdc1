"""What providers report, and what the sandbox is told to."""
