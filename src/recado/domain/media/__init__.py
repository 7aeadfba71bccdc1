"""Media: its types, told by its bytes, and how it may be shown (C8)."""
