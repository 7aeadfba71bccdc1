-- Who serves this database, for the next one to be told: written by whoever holds the lock of the owner (ownership.sql).
alter table dispatchers
    add column owner_host text, -- null: whoever it was has stopped in order
    add column owner_pid integer,
    add column owned_since timestamptz;
