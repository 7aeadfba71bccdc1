"""`recado top`: the live state of numbers in a terminal, and keys to pause and resume them (C34, C35)."""
