"""E-mail: who gets none any more."""
