-- Webhooks out (C23): who is told, what happened, and what still has to be told.
-- As with messages, the queue is a table of its own: rows leave it, so that it stays small; the log is written once.

create table webhook_subscriptions (
    organization_id id not null,
    id id not null,
    env text not null,
    url text not null,
    secret_cipher text not null,
    secret_version integer not null,
    previous_secret_cipher text, -- signs beside the present one until then
    previous_secret_until timestamptz,
    headers_cipher text, -- a JSON array of {key, value}; values may be credentials
    events text[] not null,
    description text,
    include_pii boolean not null,
    max_attempts smallint not null,
    backoff_seconds integer not null,
    status text not null,
    created_by_id text,
    consecutive_failures integer not null default 0,
    first_failure_at timestamptz, -- of the consecutive ones
    last_success_at timestamptz,
    last_failure_at timestamptz,
    failing_since timestamptz,
    probe_at timestamptz, -- while failing: when one delivery is tried
    probe_seconds integer not null default 0, -- the pause before that probe
    deleted_at timestamptz, -- revoked for good
    revision integer not null,
    updated_at timestamptz not null,
    primary key (organization_id, id)
) with (fillfactor = 50); -- its counters change with every batch of results, and stay heap-only

-- What happened, once for each event that any subscription takes. Events of messages hold no content: it is read from the
-- message when it is delivered. The time of creation is in the id.
create table events (
    organization_id id not null,
    id id not null,
    env text not null,
    type text not null,
    channel text,
    message_id id,
    data json,
    test boolean not null default false, -- made by POST /webhooks/{id}/test: for that one delivery only
    primary key (organization_id, id)
);

-- One row for each delivery that is not settled.
create table delivery_queue (
    organization_id id not null,
    subscription_id id not null,
    id id not null,
    event_id id not null,
    event text not null,
    due_at timestamptz not null,
    attempts smallint not null default 0,
    last_status smallint,
    last_error text,
    history jsonb not null default '[]', -- of the attempts so far
    replayed boolean not null default false,
    primary key (organization_id, subscription_id, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- The predicate holds for every row. It keeps the index out of plans that look for an id, which name it not: while the table
-- has no statistics the planner takes this index for as good as the key, and would read all of a subscription for each row.
create index delivery_queue_due on delivery_queue (organization_id, subscription_id, due_at, id) where attempts >= 0;

-- One row for each delivery that is settled: delivered or dropped.
create table deliveries (
    organization_id id not null,
    subscription_id id not null,
    id id not null,
    event_id id not null,
    event text not null,
    status text not null,
    settled_at timestamptz not null,
    attempts smallint not null,
    last_status smallint,
    last_error text,
    history jsonb not null,
    replayed boolean not null,
    primary key (organization_id, subscription_id, id)
);
-- An event's first delivery is as old as the event; later ones are found here, so that a replay repeats none that arrived.
create index deliveries_replayed on deliveries (organization_id, subscription_id, event_id) where replayed;
