"""Media: what callers upload, what came with messages, and which binaries are in the storage."""
