-- A deadline is taken before its message is locked, and a message before what is due for it: so nobody waits for a deadline that
-- another has. Who comes to one that is taken leaves it to whoever took it.

-- name: any
-- $2: kinds that another service sees to, as below.
select exists (select from message_deadlines where due_at <= $1 and kind <> all($2::text[]));

-- name: take
-- One block of what is due, gone with this transaction.
with taken as materialized (
    select ctid as place
    from message_deadlines
    where due_at <= $1 and kind <> all($3::text[])
    order by due_at
    limit $2
    for update skip locked
)
delete from message_deadlines d
using taken t
where d.ctid = t.place
returning d.organization_id, d.env, d.channel, d.message_id, d.kind, d.due_at, d.held_coins;

-- name: put_off
-- What would be taken first waits until $2.
update message_deadlines d
set due_at = $2
where
    (d.organization_id, d.message_id, d.kind) in (
        select organization_id, message_id, kind from message_deadlines
        where due_at <= $1 and kind <> all($3::text[])
        order by due_at
        limit 1
    );

-- name: due_fallbacks
-- Fallbacks that are due, with their messages, at most $3 of an organization: the oldest of each in turn, as one with thousands may
-- not make the code of another wait. They stay where they are. Those of suspended organizations wait.
with recursive owners as (
    (select organization_id from message_deadlines where kind = 'fallback' order by organization_id limit 1)
    union all
    select n.* from owners o
    cross join lateral (
        select organization_id from message_deadlines
        where kind = 'fallback' and organization_id > o.organization_id
        order by organization_id limit 1
    ) n
)
select
    d.organization_id, d.env, d.channel, d.message_id, d.kind, d.due_at, d.held_coins, m.provider_message_id, m.recipient,
    m.details, m.sent_at, g.held_ms, g.updated_at as held_until
from (
    select w.*, row_number() over (partition by w.organization_id order by w.due_at) as turn
    from owners o
    cross join lateral (
        select organization_id, env, channel, message_id, kind, due_at, held_coins
        from message_deadlines
        where organization_id = o.organization_id and kind = 'fallback' and due_at <= $1
        order by due_at
        limit $3
    ) w
    where not exists (select from organizations where id = o.organization_id and status = 'suspended')
    order by turn, due_at
    limit $2
) d
cross join lateral (
    select provider_message_id, recipient, details, sent_at from messages
    where organization_id = d.organization_id and env = d.env and channel = d.channel and id = d.message_id
    offset 0
) m
join organizations g on g.id = d.organization_id
order by d.turn, d.due_at;

-- name: take_one
-- A deadline by its key, gone with this transaction.
delete from message_deadlines where organization_id = $1 and message_id = $2 and kind = $3 returning held_coins;

-- name: hold_belonging
-- Lets a message, its contact and its owner stay as they are until the commit. The message is held last, as by whoever deletes a contact,
-- archives a journey or ends an execution.
with its as materialized (
    select contact_id, batch_id, journey_id, metadata ->> 'journeyRunId' as execution_id
    from messages
    where organization_id = $1 and env = $2 and channel = $3 and id = $4
),
contact as materialized (
    select from contacts
    where organization_id = $1 and env = $2 and id = (select contact_id from its)
    for key share
),
batch as materialized (
    select from batches
    where organization_id = $1 and env = $2 and id = (select batch_id from its)
    for share
),
journey as materialized (
    select from journeys
    where organization_id = $1 and env = $2 and id = (select journey_id from its)
    for share
),
execution as materialized (
    select from executions
    where
        organization_id = $1 and env = $2 and journey_id = (select journey_id from its) and id = (select execution_id from its)
    for share
)
select from messages m
where
    m.organization_id = $1 and m.env = $2 and m.channel = $3 and m.id = $4
    and ( -- so they are held before
        (select count(*) from contact) + (select count(*) from batch) + (select count(*) from journey)
        + (select count(*) from execution)
    ) >= 0
for no key update of m;

-- name: belonging
-- Whom a message belongs to, as they are now.
select
    m.recipient_hash is not null and (m.contact_id is null or c.id is not null) as has_recipient,
    m.batch_id, b.status as batch_status, b.finished_at as batch_over_at,
    m.journey_id, coalesce(j.withdrawn, false) as journey_withdrawn,
    case when e.teste then e.id end as test_id, e.motivo as end_reason
from messages m
left join contacts c on c.organization_id = $1 and c.env = $2 and c.id = m.contact_id
left join batches b on b.organization_id = $1 and b.env = $2 and b.id = m.batch_id
left join journeys j on j.organization_id = $1 and j.env = $2 and j.id = m.journey_id
left join executions e
    on e.organization_id = $1 and e.env = $2 and e.journey_id = m.journey_id and e.id = m.metadata ->> 'journeyRunId'
where m.organization_id = $1 and m.env = $2 and m.channel = $3 and m.id = $4;

-- name: put_off_one
-- It waits until $4.
update message_deadlines set due_at = $4 where organization_id = $1 and message_id = $2 and kind = $3;

-- name: add
-- What is due for messages that have left; what is known already stays as it is.
insert into message_deadlines (organization_id, env, channel, message_id, kind, due_at, held_coins)
select *
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[])
    as g (organization_id, env, channel, message_id, kind, due_at, held_coins)
order by 1, 4, 5
on conflict do nothing;

-- name: end
-- Nothing is due any more for these messages. Answers which of them something was due for, and what was held with it.
with gone as (
    delete from message_deadlines d
    using (
        select k.place
        from unnest($1::text[], $2::text[]) as g (organization_id, message_id)
        cross join lateral (
            select ctid as place
            from message_deadlines
            where organization_id = g.organization_id and message_id = g.message_id
            offset 0
            for update skip locked
        ) k
    ) q
    where d.ctid = q.place
    returning d.message_id, d.held_coins
)
select message_id, sum(held_coins)::bigint as held_coins from gone group by 1;

-- name: left
-- When these messages left, and what their channel alone knows of them.
select m.organization_id, m.env, m.channel, m.id, m.sent_at, m.details
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, channel, id)
cross join lateral (
    select * from messages
    where organization_id = g.organization_id and env = g.env and channel = g.channel and id = g.id
    offset 0
) m;
