"""Journeys and what they refer to, as rows."""
