"""Processes beside the one that has the actors, which take connections and accept messages (`--workers`)."""
