"""Providers of payments."""
