"""Provider adapters: payload out, outcome value in, receipts parsed. No database, no actors, no tasks (C29)."""
