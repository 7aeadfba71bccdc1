"""Social: the adapters of its accounts."""
