"""The embedded PostgreSQL of a data folder."""
