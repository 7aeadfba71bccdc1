"""Imports of contacts."""
