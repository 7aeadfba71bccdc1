"""Journeys that run: entries, turns of executions, and what ends them from outside."""
