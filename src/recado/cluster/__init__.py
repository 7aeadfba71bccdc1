"""Cells on many machines: Ray decides where each runs, and begins it again elsewhere (decision 0093)."""
