"""What keeps a database in order: migrations, partitions, retention, new encryption keys."""
