"""RCS: its adapters, and what they know of phones."""
