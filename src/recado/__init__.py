"""Recado: an actor-based engine that sends and tracks messages on many channels."""

__version__ = "0.1.0"
