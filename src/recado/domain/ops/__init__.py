"""What operators see: figures of what passed lately, and how troubled a number is."""
