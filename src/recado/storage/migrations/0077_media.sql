-- Media (C8). `blobs` names every binary in the storage from before it is written until after it is deleted, so that a crash leaves
-- nothing that nobody knows: whatever is past its `delete_at` goes.
create table blobs (
    organization_id id not null,
    env text not null,
    key text collate "C" not null,
    delete_at timestamptz not null,
    primary key (organization_id, env, key)
);

create index blobs_to_delete on blobs (delete_at);

-- What callers upload. `provider_ids`: what each number's provider calls it, by number.
create table media (
    organization_id id not null,
    env text not null,
    id id not null,
    number_id id not null,
    kind text not null,
    mime_type text not null,
    filename text not null,
    size bigint not null,
    sha256 text not null,
    voice boolean not null,
    blob_key text collate "C" not null,
    provider_ids jsonb not null,
    expires_at timestamptz not null,
    primary key (organization_id, env, id)
);

create index media_expired on media (expires_at);

-- The media of messages that came. `due_at`: when its copy is tried next; null: it is stored, or given up. `reference`: what its
-- provider calls it. `expires_at`: when it is forgotten, with its copy.
create table inbound_media (
    organization_id id not null,
    env text not null,
    message_id id not null,
    channel text not null,
    sender_id text not null,
    reference text not null,
    mime_type text not null,
    filename text,
    attempts smallint not null default 0,
    due_at timestamptz,
    expires_at timestamptz not null,
    blob_key text collate "C",
    stored_type text,
    size bigint,
    stored_at timestamptz,
    primary key (organization_id, env, message_id)
);

create index inbound_media_due on inbound_media (due_at) where due_at is not null;
create index inbound_media_by_blob on inbound_media (organization_id, env, blob_key) where blob_key is not null;
create index inbound_media_expired on inbound_media (expires_at);

-- What is stored of an inbound message's media, as callers read it; no index names it.
alter table messages add column media_storage json;
