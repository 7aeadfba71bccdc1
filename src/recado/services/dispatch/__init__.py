"""From the queue to the provider."""
