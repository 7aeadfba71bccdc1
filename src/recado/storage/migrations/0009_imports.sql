-- Imports of contacts (C12.7): what was handed in, how far it is written, and what is still to be written.

create table contact_imports (
    organization_id id not null,
    env text not null,
    id id not null,
    status text not null, -- processing, completed, failed
    format text not null, -- json, ndjson, csv
    options jsonb not null,
    columns text[], -- of a CSV file
    total integer not null,
    processed integer not null default 0,
    created integer not null default 0,
    updated integer not null default 0,
    unchanged integer not null default 0,
    failed integer not null default 0,
    consent_ignored integer not null default 0,
    errors jsonb not null default '[]', -- of the first 1,000 bad rows
    -- Who handed it in: whose consents these are (C12.5.1).
    actor_type text not null,
    actor_id text not null,
    actor_ip text,
    actor_agent text,
    attempts smallint not null default 0, -- at the block that comes next, in vain
    finished_at timestamptz,
    primary key (organization_id, env, id)
) with (fillfactor = 70);
create index contact_imports_open on contact_imports (id) where status = 'processing';
create index contact_imports_age on contact_imports (id);

-- Rows that are not written yet, up to a thousand in a block; a block goes in the commit that writes its rows. JSON and NDJSON:
-- a row is a line of JSON. CSV: an array of arrays of cells.
create table contact_import_blocks (
    organization_id id not null,
    import_id id not null,
    first_row integer not null, -- from 1
    rows bytea not null,
    primary key (organization_id, import_id, first_row)
);
alter table contact_import_blocks alter column rows set storage external; -- written once, read once: not worth compressing
