"""The bridge protocol, as every channel speaks it (C29.3)."""
