-- Push: apps, the devices that registered with them, and messages to many devices (C22).
create table push_apps (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    platforms text[] not null,
    credentials_cipher text,
    vapid_cipher text not null,
    vapid_public_key text not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

create table push_devices (
    organization_id id not null,
    env text not null,
    id id not null,
    app_id id not null,
    token text not null,
    token_hash bytea not null,
    platform text not null,
    status text not null,
    p256dh text,
    auth text,
    external_id text,
    contact_id id,
    user_name text,
    user_email text,
    user_phone text,
    device_name text,
    topics text[] not null,
    opted_out_at timestamptz,
    updated_at timestamptz not null,
    primary key (organization_id, env, id),
    unique (organization_id, env, token_hash, app_id)
);

create index push_devices_by_contact on push_devices (organization_id, env, contact_id) where contact_id is not null;
create index push_devices_by_status on push_devices (organization_id, env, platform, status);

-- One send to many devices. `open`: it has devices left; `dispatch_key`: what makes the ids of its dispatches unguessable.
create table push_messages (
    organization_id id not null,
    env text not null,
    id id not null,
    status text not null,
    open boolean not null,
    origin text not null,
    rate_kind text not null,
    unit_coins bigint not null,
    billed boolean not null,
    reach integer not null,
    title text,
    body text,
    platforms text[] not null,
    deep_link text,
    image_url text,
    actions jsonb not null,
    data jsonb,
    segment text,
    campaign_id text,
    metadata jsonb,
    dispatch_key bytea not null,
    scheduled_at timestamptz,
    quiet_deferred_to timestamptz,
    due_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    created_by_id id,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

create index push_messages_open on push_messages (due_at) where open;
create index push_messages_in_use on push_messages (organization_id, env, id) where open;

-- What became of a message's devices, by platform: counted as it happens, so that a read counts no devices.
create table push_counts (
    organization_id id not null,
    env text not null,
    message_id id not null,
    platform text not null,
    reach integer not null,
    delivered integer not null default 0,
    opened integer not null default 0,
    failed integer not null default 0,
    unregistered integer not null default 0,
    primary key (organization_id, env, message_id, platform)
);

-- The audience of a message, fixed when it was accepted: blocks of devices of one app and platform, which leave together.
-- `ready`: nobody has claimed it, and its message is due; `epoch`: of the process that claimed it; `over`: each of its devices
-- has a row in `push_dispatches`.
create table push_blocks (
    organization_id id not null,
    env text not null,
    message_id id not null,
    number integer not null,
    app_id id not null,
    platform text not null,
    devices text[] not null,
    ready boolean not null,
    epoch bigint,
    claimed_at timestamptz,
    over boolean not null default false,
    primary key (organization_id, env, message_id, number)
);

create index push_blocks_ready on push_blocks (organization_id, env, app_id, platform, number, message_id) where ready;
create index push_blocks_claimed on push_blocks (epoch) where claimed_at is not null and not over;

-- What became of one device. A device of a block without a row here is queued. `place`: of the device among all of the message;
-- `due_at`: when it is tried again; without it a queued one has been called for, and nobody knows its outcome.
create table push_dispatches (
    organization_id id not null,
    env text not null,
    message_id id not null,
    place integer not null,
    device_id id not null,
    app_id id not null,
    platform text not null,
    status text not null,
    code text,
    attempts smallint not null,
    due_at timestamptz,
    opened_at timestamptz,
    primary key (organization_id, env, message_id, place)
);

create index push_dispatches_due on push_dispatches (organization_id, env, app_id, platform, due_at) where due_at is not null;
