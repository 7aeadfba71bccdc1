"""Sends messages through the API as a caller would, and checks what became of each (C35)."""
