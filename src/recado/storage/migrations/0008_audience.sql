-- Static lists (C7), segments (C13), and batches that are sent to them (C15.5).

create table static_lists (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    name_key text not null, -- without case and repeated spaces: how names are compared
    description text,
    size integer not null default 0, -- its rows below; changed in their commits, which leave `revision` alone
    revision integer not null default 1,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
) with (fillfactor = 70);
create unique index static_lists_name on static_lists (organization_id, env, name_key);

-- Whoever writes here holds the row of the list; who removes a contact holds those of all lists of its environment. So one
-- index serves everything: there is no other way to come upon a member than by its list.
create table static_list_members (
    organization_id id not null,
    list_id id not null,
    contact_id id not null,
    added_at timestamptz not null,
    primary key (organization_id, list_id, contact_id)
);

create table segments (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    name_key text not null, -- as of a list
    description text,
    filters jsonb not null, -- conditions joined by and; [] when only a tree was given
    filter_tree jsonb, -- when it was given: then it says what matches
    size integer, -- at the last evaluation, which leaves `revision` alone
    size_at timestamptz,
    due_at timestamptz not null, -- when it is evaluated again
    created_by_id text,
    revision integer not null default 1,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
) with (fillfactor = 70);
create unique index segments_name on segments (organization_id, env, name_key);
create index segments_due on segments (due_at);

-- What a filter asks of the elements of a list. Functions, because a query that holds subqueries is not shared among
-- processes by every server.
create function begins_with_date(text) returns boolean language sql immutable strict parallel safe
    return translate(left($1, 10), '123456789', '000000000') = '0000-00-00';
create function list_contains(list jsonb, part text) returns boolean language sql immutable strict parallel safe
    return exists (
        select from jsonb_array_elements_text(list) as e (element) where strpos(lower(element), lower(part)) > 0
    );
create function list_has_date(list jsonb, comparison text, value text) returns boolean
language sql immutable strict parallel safe
    return exists (
        select from jsonb_array_elements_text(list) as e (element)
        where
            begins_with_date(element)
            and case comparison
                when '>' then element collate "C" > value
                when '>=' then element collate "C" >= value
                when '<' then element collate "C" < value
                else element collate "C" <= value
            end
    );

-- The list or the segment that a batch is being made of, as far as it is read; gone when it is read to its end. Until then
-- it counts as one of `batches.blocks_left`.
create table batch_audiences (
    organization_id id not null,
    batch_id id not null,
    list_id id,
    filter_tree jsonb, -- of the segment, as it was when the batch was accepted
    template_vars json, -- of every message
    metadata json,
    after_id id not null, -- contacts are read in the order of their ids
    before_id id not null, -- and only those that existed when the batch was accepted
    blocks integer not null default 0, -- made of it so far
    contacts integer not null default 0, -- read so far
    primary key (organization_id, batch_id)
);
