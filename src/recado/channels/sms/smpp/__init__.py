"""SMPP 3.4: the protocol of SMS centres (C29.1)."""
