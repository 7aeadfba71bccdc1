"""The operations of operators (C34)."""
