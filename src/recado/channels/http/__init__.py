"""Calls to other servers."""
