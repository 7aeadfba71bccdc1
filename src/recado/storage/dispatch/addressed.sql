-- Whom a number wrote to in a day, told from its messages (C14.5.5). What left within it was made since the first of these: a
-- minute in which messages left knows the oldest of them, and what is on its way stands in the queue.

-- name: oldest
with under_way as (
    select r.id
    from claims c
    cross join lateral unnest(unpack(c.organization_ids), unpack(c.ids)) as g (organization_id, id)
    cross join lateral (
        select id, sender_id, claimed_epoch
        from dispatch
        where organization_id = g.organization_id and id = g.id
        offset 0
    ) r
    where g.organization_id = $1 and r.sender_id = $2 and r.claimed_epoch is not null
    union all
    select id from dispatch
    where organization_id = $1 and sender_id = $2 and reason = 'uncertain' and not_before is not null
    union all
    select id from dispatch where organization_id = $1 and sender_id = $2 and repeat_of is not null
)
select least(
    (select min(oldest_id) from sender_minutes where organization_id = $1 and sender_id = $2 and minute > $3),
    (select min(id) from under_way)
);

-- name: count_block
-- The next $6 messages of the organization along their key, from $5 on: whom the number addressed after $7 counts from then on.
-- A window is known by the last message that opened it: who wrote again later is counted. Answers where the next block begins.
with block as materialized (
    select id, direction, status, type, sender_id, recipient_hash, sent_at, updated_at
    from messages
    where organization_id = $1 and env = $2 and channel = $3 and id >= $5
    order by id
    limit $6
),
addressed as (
    select recipient_hash, coalesce(sent_at, updated_at) as at
    from block
    where
        sender_id = $4 and direction = 'outbound' and type = 'template' and recipient_hash is not null
        and case when sent_at is null then status = 'sending' and updated_at > $7 else sent_at > $7 end
),
counted as (
    insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at)
    select $1, $4, a.recipient_hash, max(a.at)
    from addressed a
    where
        not exists (
            select from chat_windows w
            where
                w.organization_id = $1 and w.sender_id = $4 and w.recipient_hash = a.recipient_hash
                and w.last_inbound_at <= a.at and w.last_inbound_at > a.at - interval '24 hours'
            offset 0
        )
    group by a.recipient_hash
    order by a.recipient_hash
    on conflict (organization_id, sender_id, recipient_hash) do update
    set last_at = greatest(tier_recipients.last_at, excluded.last_at)
)
select max(id) from block having count(*) = $6;
