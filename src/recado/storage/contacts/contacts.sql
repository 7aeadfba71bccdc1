-- name: by_phones
-- One look into the index for each. Without statistics every index that begins with organization and environment seems as
-- good as this one; only this one has the order that is asked for. Between itself and itself: anyone who is not there is known
-- from the index alone.
select c.*
from unnest($3::text[]) as g (phone)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and phone >= g.phone and phone <= g.phone
    order by phone
    limit 1
) c
order by c.id

-- name: by_external_ids
select c.*
from unnest($3::text[]) as g (external_id)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and external_id >= g.external_id and external_id <= g.external_id
    order by external_id
    limit 1
) c
order by c.id

-- name: by_email
-- In no order: one of ids would be as well had, without statistics, by reading all contacts.
select id from contacts where organization_id = $1 and env = $2 and email_key = $3

-- name: by_user_id
select id from contacts
where organization_id = $1 and env = $2 and chatapp_user_id between $3 and $3
order by chatapp_user_id

-- name: lock
-- One by one along the key, as above, and in the order of their ids: so everybody locks contacts who changes several.
select c.id
from (select * from unnest($3::text[]) as g (id) order by id offset 0) g
cross join lateral (
    select id from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id
    order by id
    limit 1
    for update
) c

-- name: by_ids
select c.*
from unnest($3::text[]) as g (id)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id
    order by id
    limit 1
) c
order by c.id

-- name: insert
-- A batch of new contacts, by phone, so that two batches with the same phones do not wait for each other. Anyone who has the
-- phone or the external id of another one is left out, and with :unless_opted_out also anyone the opt-out registry knows: those
-- need a closer look. Answers the ids of those that were stored.
with given as (
    select {values}, decode(email_hash, 'hex') as email_hash, spellings
    from unnest({arrays}, unpack(:email_hash), unpack(:spellings)) as g ({columns}, email_hash, spellings)
)
insert into contacts ({columns})
select {columns}
from given g
where
    not :unless_opted_out::boolean
    or (
        not exists (
            select from opt_outs o
            where o.organization_id = g.organization_id and o.env = g.env and o.kind = 'phone' and o.hash = g.phone_hash
        )
        and not exists (
            select from opt_outs o
            where o.organization_id = g.organization_id and o.env = g.env and o.kind = 'email' and o.hash = g.email_hash
        )
        and (opted_out_as(g.organization_id, g.env, g.spellings)) is not true
    )
order by organization_id, env, phone
on conflict do nothing
returning id

-- name: holders
-- Who has the phones and external ids that new contacts were left out for; each looked up as above.
select g.id, c.id as holder, c.phone = g.phone as by_phone
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as g (organization_id, env, id, phone, external_id)
cross join lateral (
    (
        select id, phone from contacts
        where organization_id = g.organization_id and env = g.env and phone >= g.phone and phone <= g.phone
        order by phone
        limit 1
    )
    union all
    (
        select id, phone from contacts
        where
            organization_id = g.organization_id and env = g.env
            and external_id >= g.external_id and external_id <= g.external_id
        order by external_id
        limit 1
    )
) c

-- name: save
update contacts set
    {change}, search = array_to_tsvector(:words::text[]), revision = revision + 1, updated_at = :updated_at
where organization_id = :organization_id and env = :env and id = :id and revision = :revision
returning *

-- name: save_contacts
-- Many changed contacts; anyone who was changed since it was read is left out. Answers the ids of those that were written.
-- Each is found along the one index that has the order that is asked for, and touched by its place: without statistics every
-- index of the environment is as good to the planner, and it would read all of its contacts for each.
update contacts c set {changes}, revision = c.revision + 1, updated_at = :now
from (
    select r.place, g.*
    from unnest(:ids::text[], :revisions::integer[], {saved_arrays}) as g (id, revision, {saved})
    cross join lateral (
        select ctid as place, id, revision from contacts
        where organization_id = :organization_id and env = :env and id >= g.id
        order by id
        limit 1
    ) r
    where r.id = g.id and r.revision = g.revision
) g
where c.ctid = g.place
returning c.id

-- name: hold
-- Those of these contacts that are there; none of them goes away meanwhile.
select id from contacts where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share

-- name: hold_unchanged
-- Those of these contacts that still have these revisions; none of them changes meanwhile. One by one along the key, in the
-- order of their ids: so everybody locks contacts who changes several.
select c.id
from (select * from unnest($3::text[], $4::integer[]) as g (id, revision) order by id offset 0) g
cross join lateral (
    select id from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id and revision = g.revision
    order by id
    limit 1
    for no key update
) c
