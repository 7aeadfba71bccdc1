-- name: expect
insert into inbound_media (
    organization_id, env, channel, message_id, sender_id, reference, mime_type, filename, due_at, expires_at
)
select o, e, c, m, s, r, t, f, $9, $10
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
    as g (o, e, c, m, s, r, t, f)
on conflict do nothing;

-- name: get
select
    organization_id, env, message_id, channel, sender_id, reference, mime_type, filename, attempts, expires_at,
    blob_key, stored_type, size, stored_at
from inbound_media
where organization_id = $1 and env = $2 and message_id = $3 and expires_at > $4;

-- name: size_of
select size from inbound_media where organization_id = $1 and env = $2 and blob_key = $3;

-- name: due
-- The oldest of each organization first in turn, so that one with thousands keeps nobody waiting: each organization is found by one
-- look into the index, and at most $3 rows of it are read.
with recursive owners as (
    (select organization_id from inbound_media where due_at is not null order by organization_id limit 1)
    union all
    select n.* from owners o
    cross join lateral (
        select organization_id from inbound_media
        where due_at is not null and organization_id > o.organization_id
        order by organization_id limit 1
    ) n
)
select
    organization_id, env, message_id, channel, sender_id, reference, mime_type, filename, attempts, expires_at,
    blob_key, stored_type, size, stored_at
from (
    select w.*, row_number() over (partition by w.organization_id order by w.due_at) as turn
    from owners o
    cross join lateral (
        select * from inbound_media where organization_id = o.organization_id and due_at <= $1 order by due_at limit $3
    ) w
) waiting
order by turn, due_at
limit $2;

-- name: tried
update inbound_media set attempts = attempts + 1, due_at = $4
where organization_id = $1 and env = $2 and message_id = $3 and blob_key is null;

-- name: stored
-- Nothing where the message was erased meanwhile: its copy then goes.
with found as (
    update inbound_media
    set blob_key = $5, stored_type = $6, size = $7, stored_at = $8, due_at = null, attempts = attempts + 1
    where organization_id = $1 and env = $2 and message_id = $4 and blob_key is null
    returning message_id
),
shown as (
    update messages set media_storage = $9::text::json
    where
        organization_id = $1 and env = $2 and channel = $3 and id = (select message_id from found) and payload is not null
)
select exists (select from found);

-- name: erase
-- The media of these messages is forgotten, and their copies, which were written to their ends, are due to be deleted.
with gone as (
    delete from inbound_media
    where organization_id = $1 and env = $2 and message_id = any($3::text[])
    returning blob_key
)
update blobs set delete_at = $4
where organization_id = $1 and env = $2 and key in (select blob_key from gone where blob_key is not null);

-- name: purge
delete from inbound_media
where
    (organization_id, env, message_id) in (
        select organization_id, env, message_id from inbound_media where expires_at <= $1 limit $2
    );
