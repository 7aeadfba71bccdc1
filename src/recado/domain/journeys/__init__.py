"""Journeys (C9): the graph of steps, and what is wrong with it."""
