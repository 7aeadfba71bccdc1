-- Batches (C15.5): many messages by one request, their progress, and what waits to be made of them.

create table batches (
    organization_id id not null,
    env text not null,
    id id not null,
    name text,
    channel text not null,
    number_id id not null,
    type text not null,
    template_id id,
    payload json, -- what its messages share; a recipient's own stands in its block
    class smallint not null,
    campaign_id text,
    status text not null,
    requested integer not null,
    skipped integer not null,
    skipped_reasons jsonb not null, -- code → n
    errors jsonb not null, -- of the first 100 recipients that were left out
    scheduled_at timestamptz,
    ttl_ms bigint not null,
    held_base_ms bigint not null, -- as in dispatch
    blocks_left integer not null, -- in batch_blocks
    pause_reason text, -- no_balance when it was not the caller who paused it
    paused_at timestamptz,
    held_ms bigint not null default 0, -- past pauses: they do not count towards the TTL of its messages
    -- Until nothing of it happens by itself any more: a canceled batch is open until its queue is empty.
    open boolean not null,
    created_by_id text,
    started_at timestamptz, -- when its first messages were made
    finished_at timestamptz,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
) with (fillfactor = 70);
create index batches_open on batches (id) where open;
create index batches_campaign on batches (organization_id, env, campaign_id) where open and campaign_id is not null;

-- Recipients whose messages are not made yet, a thousand a row; gone when they are. `recipients` holds columns, not rows.
create table batch_blocks (
    organization_id id not null,
    batch_id id not null,
    number integer not null,
    recipients json not null,
    primary key (organization_id, batch_id, number)
);

-- How many messages of a batch or a campaign stand where, kept as deltas in the commits that move them (C15.6). `queued`
-- includes what is being sent. A message is in one of the counts from `queued` on.
create table totals (
    organization_id id not null,
    env text not null,
    kind text not null, -- batch, campaign
    key text collate "C" not null, -- its id
    accepted bigint not null default 0,
    queued bigint not null default 0,
    sent bigint not null default 0,
    delivered bigint not null default 0,
    read bigint not null default 0,
    failed bigint not null default 0,
    archived bigint not null default 0,
    held_coins bigint not null default 0,
    charged_coins bigint not null default 0,
    first_at timestamptz, -- when the first and the last of them was accepted
    last_at timestamptz,
    primary key (organization_id, env, kind, key)
) with (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- The ready and the waiting rows of one owner: held back, let go, or withdrawn together.
create index dispatch_owner on dispatch (organization_id, owner, id) where owner <> 'single';
