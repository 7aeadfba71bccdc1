"""Batches and campaigns."""
