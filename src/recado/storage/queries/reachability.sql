-- Contacts are locked in the order of their ids, as by whoever changes several of them; neither mark raises the revision.

-- name: mark
-- The recipients of these messages, as far as they are contacts and the provider said for good that it cannot reach them on
-- the channel $4. Answers whose environments have a mark now.
with failed as materialized (
    select distinct m.organization_id, m.env, m.recipient
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    cross join lateral (
        select * from messages k
        where k.organization_id = g.organization_id and k.env = g.env and k.channel = $4 and k.id = g.id
        limit 1
    ) m
    where coalesce(m.original_error, m.last_error) like 'recipient\_unreachable:%'
),
found as materialized (
    select c.organization_id, c.env, c.id
    from failed f
    cross join lateral (
        select organization_id, env, id, phone from contacts
        where organization_id = f.organization_id and env = f.env and phone >= f.recipient
        order by phone
        limit 1
    ) c
    where c.phone = f.recipient
),
locked as materialized (
    select c.organization_id, c.env, c.id
    from (select * from found order by id) f
    cross join lateral (
        select organization_id, env, id from contacts
        where organization_id = f.organization_id and env = f.env and id = f.id
        for update
    ) c
),
marked as (
    update contacts c
    set unreachable = array_append(c.unreachable, $4)
    from locked l
    where
        c.organization_id = l.organization_id and c.env = l.env and c.id = l.id
        and not $4 = any(c.unreachable)
)
select distinct organization_id, env from locked;

-- name: clear
-- Of the recipients of these messages, those that are marked, though they were reached.
with found as materialized (
    select c.organization_id, c.env, c.id
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    cross join lateral (
        select * from messages k
        where k.organization_id = g.organization_id and k.env = g.env and k.channel = $4 and k.id = g.id
        limit 1
    ) m
    cross join lateral (
        select organization_id, env, id, phone from contacts
        where organization_id = m.organization_id and env = m.env and phone >= m.recipient and unreachable <> '{}'
        order by phone
        limit 1
    ) c
    where c.phone = m.recipient
),
locked as materialized (
    select c.organization_id, c.env, c.id
    from (select distinct * from found order by id) f
    cross join lateral (
        select organization_id, env, id from contacts
        where organization_id = f.organization_id and env = f.env and id = f.id
        for update
    ) c
)
update contacts c
set unreachable = array_remove(c.unreachable, $4)
from locked l
where c.organization_id = l.organization_id and c.env = l.env and c.id = l.id;

-- name: any_marked
select exists (select from contacts where organization_id = $1 and env = $2 and unreachable <> '{}');
