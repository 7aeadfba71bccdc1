"""What several of them use."""
