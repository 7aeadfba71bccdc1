"""Wallets and prices."""
