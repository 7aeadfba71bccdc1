-- The first schema: one channel, end to end.
-- Ids are text in the collation "C", so that order by id is order of creation (C2.1); a record's creation time is in its id.
-- Every large table begins its key with organization_id, so that it can be distributed by it.

create domain id as text collate "C";

-- A batch's column of texts that hold no control characters, as one text (`rows.py: pack`): an array of them takes the driver
-- twenty times as long to encode.
create function unpack(text) returns text[] language sql immutable strict parallel safe
    return string_to_array($1, e'\x1f', e'\x1e');
create function moment(microseconds bigint) returns timestamptz language sql immutable strict parallel safe
    return timestamptz 'epoch' + microseconds * interval '1 microsecond';

-- Installation ---------------------------------------------------------------------------------------------------------

-- The epoch of the one process that may claim messages; raised when a process takes the number actors over (C14.5).
create table dispatchers (
    shard integer primary key,
    epoch bigint not null,
    taken_at timestamptz not null
);
insert into dispatchers (shard, epoch, taken_at) values (0, 0, '-infinity');

create table organizations (
    id id primary key,
    name text not null,
    status text not null,
    time_zone text not null,
    country text not null,
    quiet_start time,
    quiet_end time,
    require_granted_for_marketing boolean not null,
    opt_out_keywords text[] not null,
    opt_in_keywords text[] not null,
    opt_out_reply text,
    dedicated_sender text,
    -- Time that queues stood still because the organization was suspended: it does not count towards a message's TTL.
    held_ms bigint not null default 0,
    held_since timestamptz,
    revision integer not null,
    updated_at timestamptz not null
);

create table api_keys (
    organization_id id not null,
    id id not null,
    env text not null,
    name text not null,
    prefix text not null,
    scopes text[] not null,
    expires_at timestamptz,
    allowed_ips text[] not null,
    rate_limits jsonb,
    unlimited boolean not null default false,
    created_by_id text,
    last_used_at timestamptz,
    rotated_at timestamptz,
    previous_valid_until timestamptz,
    revoked_at timestamptz,
    primary key (organization_id, id)
);

-- Looked up by hash before the organization is known: a reference table of a distributed database.
create table api_key_tokens (
    token_hash bytea primary key,
    organization_id id not null,
    key_id id not null,
    valid_until timestamptz
);
create index api_key_tokens_key on api_key_tokens (organization_id, key_id);

create table audit (
    organization_id id not null,
    id id not null,
    env text, -- null: it concerns the organization itself and both environments read it
    actor_type text not null,
    actor_id text not null,
    action text not null,
    target_id text,
    ip text,
    request_id text,
    details jsonb not null,
    primary key (organization_id, id)
);

create table idempotency (
    organization_id id not null,
    env text not null,
    key_hash bytea not null, -- SHA-256 over method, route with its path ids, and key
    fingerprint bytea not null,
    created_at timestamptz not null,
    locked_until timestamptz, -- while the first request runs; null once it has an answer or a row
    message_id id, -- a send: the row that this key is bound to
    status smallint,
    body bytea,
    primary key (organization_id, env, key_hash)
);
create index idempotency_age on idempotency (created_at);

-- Numbers and templates ------------------------------------------------------------------------------------------------

create table numbers (
    organization_id id not null,
    id id not null,
    env text not null,
    phone_number_id text not null,
    business_account_id text not null,
    display_phone text not null,
    status text not null,
    quality_rating text not null,
    messaging_tier text not null,
    per_second integer not null,
    per_day integer not null,
    verified_name text,
    byo boolean not null,
    name_status text,
    partner_removed_at timestamptz,
    partner_removed_reason text,
    profile jsonb not null,
    access_token_cipher text,
    operator_paused_at timestamptz,
    held_ms bigint not null default 0, -- past pauses by an operator, in milliseconds
    last_provider_sync_at timestamptz,
    verify_at timestamptz, -- when the provider is asked again whether a pending number is verified
    deleted_at timestamptz,
    revision integer not null,
    updated_at timestamptz not null,
    primary key (organization_id, id)
);
create index numbers_verify on numbers (verify_at) where verify_at is not null;

-- A provider's number belongs to one organization of the installation (C14.1).
create table number_owners (
    env text not null,
    phone_number_id text not null,
    organization_id id not null,
    number_id id not null,
    primary key (env, phone_number_id)
);

create table number_minutes (
    organization_id id not null,
    number_id id not null,
    minute timestamptz not null, -- of sent_at
    sent integer not null,
    marketing integer not null,
    uncategorized integer not null, -- template messages whose category was not recorded
    primary key (organization_id, number_id, minute)
) with (fillfactor = 70);

-- Recipients of business-initiated messages (C14.5, tier). recipient_hash: the first 8 bytes of the phone hash.
create table tier_recipients (
    organization_id id not null,
    number_id id not null,
    recipient_hash bigint not null,
    last_at timestamptz not null,
    primary key (organization_id, number_id, recipient_hash)
) with (fillfactor = 70);

-- The 24 h window that an inbound message opens (C15.2.2, C28.2).
create table chat_windows (
    organization_id id not null,
    number_id id not null,
    recipient_hash bigint not null,
    last_inbound_at timestamptz not null,
    primary key (organization_id, number_id, recipient_hash)
) with (fillfactor = 70);

create table templates (
    organization_id id not null,
    id id not null,
    env text not null,
    number_id id not null,
    name text not null,
    language text not null,
    category text not null,
    status text not null,
    components jsonb not null,
    header_example_url text,
    provider_template_id text,
    version integer not null,
    approved_version integer, -- the last version that was approved: template.approved is not repeated (C11.3)
    rejection_reason text,
    submit_attempts integer not null default 0,
    next_step_at timestamptz, -- of submission and of the sandbox's review
    verdict jsonb, -- the sandbox's, due at next_step_at
    deleted_at timestamptz,
    revision integer not null,
    updated_at timestamptz not null,
    primary key (organization_id, id)
);
create unique index templates_name on templates (organization_id, number_id, name, language) where deleted_at is null;
create index templates_provider on templates (provider_template_id) where provider_template_id is not null;
create index templates_step on templates (next_step_at) where next_step_at is not null;

-- Messages -------------------------------------------------------------------------------------------------------------

-- One index only, and none on a column that changes: status updates stay heap-only. The key serves lists, cursors and periods.
create table messages (
    organization_id id not null,
    env text not null,
    channel text not null,
    id id not null,
    direction text not null,
    status text not null,
    type text not null,
    number_id id,
    recipient text not null,
    recipient_hash bigint not null,
    class smallint not null, -- 0 critical, 1 normal, 2 bulk
    force boolean not null,
    template_id id,
    template_category text, -- at the time of sending
    payload json, -- json, not jsonb: what the caller gave is returned unchanged, and stored faster
    template_vars json,
    metadata json,
    campaign_id text,
    batch_id id,
    contact_id id,
    attempts smallint not null default 0,
    last_error text,
    original_error text,
    reprocessed boolean not null default false,
    replaced_by id,
    provider_message_id text,
    sent_by_account_id id,
    sent_by_name text,
    scheduled_at timestamptz,
    sent_at timestamptz,
    delivered_at timestamptz,
    read_at timestamptz,
    failed_at timestamptz,
    archived_at timestamptz,
    updated_at timestamptz not null,
    primary key (organization_id, env, channel, id)
) partition by range (id);

create index messages_campaign on messages (organization_id, env, campaign_id, id) where campaign_id is not null;
create index messages_batch on messages (organization_id, env, batch_id, id) where batch_id is not null;
create index messages_contact on messages (organization_id, env, contact_id, id) where contact_id is not null;
-- The predicates name columns that are set once, so that other updates of the row stay heap-only.
create index messages_failed on messages (organization_id, env, id) where failed_at is not null;
create index messages_archived on messages (organization_id, env, id) where archived_at is not null;

-- One row for each message that is queued or sending; gone when its send is settled.
create table dispatch (
    organization_id id not null,
    id id not null,
    env text not null,
    channel text not null,
    number_id id not null,
    class smallint not null,
    owner text collate "C" not null, -- a batch, a journey, or 'single' (C14.5.2)
    due_at timestamptz not null,
    not_before timestamptz, -- set together with reason by the gate that holds the row back, or when it became uncertain
    reason text,
    detail text,
    ttl_ms bigint not null,
    expires_at timestamptz not null, -- may lie too early by the time held; checked again before a message fails
    held_base_ms bigint not null, -- the number's and organization's held time when the row was made
    attempts smallint not null default 0,
    crashes smallint not null default 0, -- how often this row was in hand when its actor failed
    force boolean not null,
    template_id id,
    claimed_epoch bigint,
    claimed_at timestamptz,
    primary key (organization_id, id)
) with (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- None names a column that a claim sets, and a page has room for a second version of each of its rows: claiming a row stays
-- heap-only. So the ready rows include those under way, which are few.
create index dispatch_ready on dispatch (organization_id, number_id, class, owner, due_at, id) where not_before is null;
create index dispatch_forced on dispatch (organization_id, number_id, id) where force and not_before is null;
create index dispatch_due on dispatch (not_before) where not_before is not null;
create index dispatch_held on dispatch (organization_id, number_id, reason, id) where not_before is not null;
create index dispatch_uncertain on dispatch (id) where reason = 'uncertain';
create index dispatch_expiry on dispatch (expires_at);

-- Finds the message of a report that carries no reference of ours (C29.2).
create table provider_messages (
    organization_id id not null,
    number_id id not null,
    provider_message_id text not null,
    message_id id not null,
    primary key (organization_id, number_id, provider_message_id)
);

-- An inbound message is stored once for each provider id (C28.1).
create table inbound_ids (
    organization_id id not null,
    number_id id not null,
    provider_message_id text not null,
    message_id id not null,
    primary key (organization_id, number_id, provider_message_id)
);

-- Reports of the sandbox, due in the future (C29.4): rows, so that a restart forgets none.
create table sandbox_reports (
    organization_id id not null,
    message_id id not null,
    step smallint not null,
    due_at timestamptz not null,
    number_id id not null,
    event jsonb not null,
    primary key (organization_id, message_id, step)
);
create index sandbox_reports_due on sandbox_reports (due_at);

-- Callbacks as they came in (C29.5), and the events that wait for a message that is not known yet.
create table callbacks (
    id bigint generated always as identity primary key,
    channel text not null,
    adapter text not null,
    sha256 bytea not null unique,
    body bytea not null,
    received_at timestamptz not null,
    processed_at timestamptz,
    failure text
);
create index callbacks_open on callbacks (id) where processed_at is null;
create index callbacks_age on callbacks (received_at);

create table parked_reports (
    id bigint generated always as identity primary key,
    organization_id id not null,
    number_id id not null,
    event jsonb not null,
    retry_at timestamptz not null,
    give_up_at timestamptz not null
);
create index parked_reports_retry on parked_reports (retry_at);
