"""The `recado` command: one file per group of commands, mounted in `program` (C35)."""
