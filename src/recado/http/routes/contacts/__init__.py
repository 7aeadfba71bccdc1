"""Contacts and companies."""
