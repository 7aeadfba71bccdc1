"""Connections, bodies and bytes: what is below requests and answers."""
