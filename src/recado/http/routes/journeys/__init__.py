"""Journeys: drafts, their versions and copies."""
