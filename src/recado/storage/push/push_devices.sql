-- name: matches
select * from push_devices
where
    organization_id = $1 and env = $2
    and ($3::text is null or app_id = $3)
    and ($4::text is null or platform = $4)
    and ($5::text is null or status = $5)
    and ($6::text is null or contact_id = $6)

-- name: hold
-- In the order of their ids, as everybody locks devices who changes several. First their apps, as who deletes one does: a device that
-- is written after that would stay behind.
with kept as materialized (
    select a.id from push_apps a
    where (a.organization_id, a.env, a.id) in (select * from unnest($1::text[], $2::text[], $3::text[]))
    order by a.organization_id, a.env, a.id
    for key share of a
)
select d.*
from unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) as g (organization_id, env, app_id, token_hash)
join push_devices d
    on d.organization_id = g.organization_id and d.env = g.env and d.token_hash = g.token_hash and d.app_id = g.app_id
where (select count(*) from kept) >= 0 -- so they are locked before
order by d.id
for no key update of d;

-- name: named
-- The app of each, the contact that it names, and the one that has its external id; in order.
select
    a.platforms,
    c.id is not null as contact_there,
    e.id as found_id
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality
    as g (organization_id, env, app_id, contact_id, external_id, place)
left join push_apps a on a.organization_id = g.organization_id and a.env = g.env and a.id = g.app_id
left join contacts c on c.organization_id = g.organization_id and c.env = g.env and c.id = g.contact_id
left join contacts e on e.organization_id = g.organization_id and e.env = g.env and e.external_id = g.external_id
order by g.place;

-- name: hold_contacts
-- How many of these contacts are there, none of which is deleted until the commit; in the order of their ids, as in `count`.
select count(*) from (
    select organization_id, env, id from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    order by id
    offset 0
) g
cross join lateral (
    select id from contacts
    where organization_id = g.organization_id and env = g.env and id >= g.id and id <= g.id
    order by id
    limit 1
    for key share
) c;

-- name: write
insert into push_devices (
    organization_id, env, id, app_id, token, token_hash, platform, status, p256dh, auth, external_id, contact_id,
    user_name, user_email, user_phone, device_name, topics, opted_out_at, updated_at
)
select
    organization_id, env, id, app_id, token, token_hash, platform, status, p256dh, auth, external_id, contact_id,
    user_name, user_email, user_phone, device_name, string_to_array(topics, E'\x1f'), opted_out_at, updated_at
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
    $18::timestamptz[], $19::timestamptz[]
) as g (
    organization_id, env, id, app_id, token, token_hash, platform, status, p256dh, auth, external_id, contact_id,
    user_name, user_email, user_phone, device_name, topics, opted_out_at, updated_at
)
on conflict (organization_id, env, id) do update set
    platform = excluded.platform, status = excluded.status, p256dh = excluded.p256dh, auth = excluded.auth,
    external_id = excluded.external_id, contact_id = excluded.contact_id, user_name = excluded.user_name,
    user_email = excluded.user_email, user_phone = excluded.user_phone, device_name = excluded.device_name,
    topics = excluded.topics, opted_out_at = excluded.opted_out_at, updated_at = excluded.updated_at;

-- name: by_token
select * from push_devices where organization_id = $1 and env = $2 and app_id = $3 and token_hash = $4;

-- name: opt_out
-- Also what it was before.
with held as materialized (
    select id, status as before from push_devices
    where
        organization_id = $1 and env = $2 and app_id = $3 and token_hash = $4
        and status = any($7::text[]) and status <> $6
    for no key update
)
update push_devices d set status = $6, opted_out_at = $5, updated_at = $5
from held h
where d.organization_id = $1 and d.env = $2 and d.id = h.id
returning d.*, h.before;

-- name: count
-- So many more registered devices of each of these contacts, or fewer. They are locked after the devices, in the order of their ids, as
-- by anyone who changes several of them; the number does not raise the revision.
with locked as materialized (
    select c.organization_id, c.env, c.id, g.change
    from (
        select * from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as g (organization_id, env, id, change)
        order by id
        offset 0
    ) g
    cross join lateral (
        select organization_id, env, id from contacts
        where organization_id = g.organization_id and env = g.env and id >= g.id and id <= g.id
        order by id
        limit 1
        for no key update
    ) c
)
update contacts c set push_devices = c.push_devices + l.change
from locked l
where c.organization_id = l.organization_id and c.env = l.env and c.id = l.id;

-- name: invalidate
update push_devices d set status = $5, updated_at = $4
from (
    select h.organization_id, h.env, h.id
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    join push_devices h on h.organization_id = g.organization_id and h.env = g.env and h.id = g.id
    where h.status = any($6::text[])
    order by h.id
    for no key update of h
) held
where d.organization_id = held.organization_id and d.env = held.env and d.id = held.id
returning d.*;

-- name: sums
select
    platform,
    count(*) filter (where status = 'registered') as registered,
    count(*) filter (where status = 'opted_out') as opted_out,
    count(*) filter (where status = 'invalid') as invalid
from push_devices
where organization_id = $1 and env = $2
group by platform;

-- name: unlink
-- Some devices of a contact that is deleted stay the app's, and say nothing of a person any more; held in the order of their ids.
-- The contact's refusal becomes theirs: nobody else would know of it.
with given as materialized (
    select id from push_devices where organization_id = $1 and env = $2 and contact_id = $3 limit $4
),
held as materialized (
    select d.id from given g
    join push_devices d on d.organization_id = $1 and d.env = $2 and d.id = g.id
    where d.contact_id = $3
    order by d.id
    for no key update of d
)
update push_devices d
set
    contact_id = null, external_id = null, user_name = null, user_email = null, user_phone = null, device_name = null,
    status = case when d.status = 'registered' and r.denied then 'opted_out' else d.status end,
    opted_out_at = case when d.status = 'registered' and r.denied then $5 else d.opted_out_at end,
    updated_at = case when d.status = 'registered' and r.denied then $5 else d.updated_at end
from
    held h,
    (
        select
            exists (select from contacts where organization_id = $1 and env = $2 and id = $3 and opt_in_status = 'denied')
            or exists (select from contact_erasures where organization_id = $1 and env = $2 and contact_id = $3 and refused)
            as denied
    ) r
where d.organization_id = $1 and d.env = $2 and d.id = h.id;
