"""Contacts and what they consented to."""
