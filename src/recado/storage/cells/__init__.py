"""Cells: databases with a service each, which organizations are divided among, and the map of who is where."""
