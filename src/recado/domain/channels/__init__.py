"""Channels: by what each of them differs."""
