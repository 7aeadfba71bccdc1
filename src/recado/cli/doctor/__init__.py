"""`recado doctor`: looks at everything that an installation depends on, and changes nothing (C35)."""
