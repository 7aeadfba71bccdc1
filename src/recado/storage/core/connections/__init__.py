"""The database: pools of connections, batches, and what a failure means."""
