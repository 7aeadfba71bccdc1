"""Batches, campaigns and resends."""
