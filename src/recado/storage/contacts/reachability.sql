-- Contacts are locked in the order of their ids, as by anyone who changes several of them; neither mark raises the revision.
-- In the transaction of the moves, which has locked messages, nobody is waited for (`for update skip locked`): who changes a
-- contact locks it before messages. Answered are the messages whose contact was being changed: they are told again.

-- name: mark
-- The recipients of these messages, as far as they are contacts and the provider said for good, by a code of $5, that it cannot
-- reach them on the channel $4, or by what carried the message there. Answers the contacts that were found: whether each has a
-- mark now, and the message that told.
with failed as materialized (
    select
        m.organization_id, m.env, m.recipient, min(m.id) as message_id,
        array_agg(distinct coalesce(m.details ->> 'deliveredVia', $4)) as carriers
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    cross join lateral (
        select * from messages k
        where k.organization_id = g.organization_id and k.env = g.env and k.channel = $4 and k.id = g.id
        limit 1
    ) m
    where m.failure_code = any($5::text[])
    group by m.organization_id, m.env, m.recipient
),
found as materialized (
    select c.organization_id, c.env, c.id, f.message_id, f.carriers
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
    select c.organization_id, c.env, c.id, f.carriers
    from (select * from found order by id) f
    cross join lateral (
        select organization_id, env, id from contacts
        where organization_id = f.organization_id and env = f.env and id = f.id
        for update
    ) c
),
marked as (
    update contacts c
    set unreachable = c.unreachable || array(select unnest(l.carriers) except select unnest(c.unreachable))
    from locked l
    where
        c.organization_id = l.organization_id and c.env = l.env and c.id = l.id
        and not l.carriers <@ c.unreachable
)
select f.organization_id, f.env, f.message_id, l.id is not null as done
from found f left join locked l on l.organization_id = f.organization_id and l.env = f.env and l.id = f.id;

-- name: clear
-- Of the recipients of these messages, those that are marked, though they were reached. Answers as `mark`.
with found as materialized (
    select c.organization_id, c.env, c.id, m.id as message_id, coalesce(m.details ->> 'deliveredVia', $4) as carrier
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
    select c.organization_id, c.env, c.id, f.carriers
    from (
        select organization_id, env, id, array_agg(carrier) as carriers from found
        group by organization_id, env, id
        order by id
    ) f
    cross join lateral (
        select organization_id, env, id from contacts
        where organization_id = f.organization_id and env = f.env and id = f.id
        for update
    ) c
),
cleared as (
    update contacts c
    set unreachable = array(select u from unnest(c.unreachable) as u where u <> all(l.carriers))
    from locked l
    where c.organization_id = l.organization_id and c.env = l.env and c.id = l.id
)
select f.organization_id, f.env, f.message_id, l.id is not null as done
from found f left join locked l on l.organization_id = f.organization_id and l.env = f.env and l.id = f.id;

-- name: with_marks
select g.organization_id, g.env
from unnest($1::text[], $2::text[]) as g (organization_id, env)
cross join lateral (
    select phone from contacts
    where organization_id = g.organization_id and env = g.env and unreachable <> '{}'
    order by phone
    limit 1
) c;
