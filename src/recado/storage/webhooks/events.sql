-- name: insert
insert into events (organization_id, id, env, type, channel, message_id, data, test)
values ($1, $2, $3, $4, $5, $6, $7::text::json, $8);

-- name: queue
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at, replayed)
select $1, g.subscription_id, g.id, g.event_id, g.event, $2, $3
from unnest($4::text[], $5::text[], $6::text[], $7::text[]) as g (subscription_id, id, event_id, event)
on conflict do nothing;

-- name: insert_records
-- Events of records, which store their data, and their deliveries.
with emitted as (
    insert into events (organization_id, id, env, type, data)
    select organization_id, id, env, type, data::json
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as e (organization_id, id, env, type, data)
)
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
select *
from unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::timestamptz[]);

-- name: emit_batch
-- The events of many messages at once, with their deliveries. The same batch run twice has the same ids.
with emitted as (
    insert into events (organization_id, id, env, type, channel, message_id, data)
    select organization_id, id, env, type, channel, message_id, data::json
    from unnest(unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6), $13::text[])
        as e (organization_id, id, env, type, channel, message_id, data)
    on conflict do nothing
)
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
select organization_id, subscription_id, id, event_id, event, moment(due_us)
from unnest(unpack($7), unpack($8), unpack($9), unpack($10), unpack($11), unpack($12)::bigint[])
    as q (organization_id, subscription_id, id, event_id, event, due_us)
on conflict do nothing;

-- name: missed
-- Events of a period for a replay, the oldest $8 of them: those that the subscription takes ($5, or all when null), that are
-- not queued for it and, unless $9, that never reached it. An event's first delivery is made with it ($6 to $7 bounds its
-- id); later ones are replays.
select e.id, e.type
from events e
where
    e.organization_id = $1 and e.env = $10 and e.id >= $3 and e.id < $4 and not e.test
    and ($5::text[] is null or e.type = any($5))
    and not exists (
        select from delivery_queue q
        where q.organization_id = $1 and q.subscription_id = $2 and q.event_id = e.id
    )
    and (
        $9::boolean
        or not exists (
            select from deliveries d
            where
                d.organization_id = $1 and d.subscription_id = $2 and d.id >= $6 and d.id < $7
                and d.event_id = e.id and d.status = 'delivered'
        )
        and not exists (
            select from deliveries d
            where
                d.organization_id = $1 and d.subscription_id = $2 and d.event_id = e.id and d.replayed
                and d.status = 'delivered'
        )
    )
order by e.id
limit $8;

-- name: of_message
-- The newest of a message. Whose it is, is asked of those that were found: the key of the table would seem to fit else. Named
-- as a range, the message is found in the order of the index; else all of its events may be read and sorted.
select id
from (
    select organization_id, id from events
    where message_id between $2 and $2 and ($3::text is null or type = $3)
    order by message_id desc, id desc
    limit $4
) newest
where organization_id = $1;

-- name: purge
delete from events
where
    organization_id = $1
    and id = any(array(select id from events where organization_id = $1 and id < $2 order by id limit $3));
