"""What lasts: PostgreSQL (embedded or given), migrations, partitions, batched writers and the SQL of each aggregate.

Knows nothing of actors, channels or HTTP; speaks in the values of `domain`.
"""
