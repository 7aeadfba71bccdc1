"""Journeys (C9): the graph of steps, what is wrong with it, and what one execution does next."""
