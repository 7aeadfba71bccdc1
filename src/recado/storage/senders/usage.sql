-- name: totals
select coalesce(sum(sent), 0) as sent, coalesce(sum(marketing), 0) as marketing,
    coalesce(sum(uncategorized), 0) as uncategorized
from sender_minutes
where organization_id = $1 and sender_id = $2 and minute >= $3 and minute < $4

-- name: series
-- $5: the starts of the buckets, the first not after $3; bucket numbers count from 1.
select width_bucket(minute, $5::timestamptz[]) as bucket, sum(sent) as sent
from sender_minutes
where organization_id = $1 and sender_id = $2 and minute >= $3 and minute < $4
group by bucket

-- name: waiting
-- Ready rows and held ones, each through its own index: a queue of another number costs nothing here.
select class, count(*) as waiting
from (
    select class from dispatch
    where organization_id = $1 and sender_id = $2 and not_before is null and claimed_epoch is null
    union all
    select class from dispatch
    where organization_id = $1 and sender_id = $2 and not_before is not null and claimed_epoch is null
) queued
group by class

-- name: recipients
select count(*) from tier_recipients where organization_id = $1 and sender_id = $2 and last_at > $3

-- name: addressed
-- The same of a number whose recipients are not kept now: those that were, while its tier had a limit, and those among the newest
-- $6 messages of its organization (as in addressed.sql).
select count(*)
from (
    select recipient_hash from tier_recipients where organization_id = $1 and sender_id = $2 and last_at > $5
    union
    select m.recipient_hash
    from (
        select direction, status, type, sender_id, recipient_hash, sent_at, coalesce(sent_at, updated_at) as at
        from messages
        where
            organization_id = $1 and env = $3 and channel = $4
            and id >= (
                select min(oldest_id) from sender_minutes
                where organization_id = $1 and sender_id = $2 and minute > $5 - interval '1 minute'
            )
        order by id desc
        limit $6
    ) m
    left join chat_windows w
        on
            w.organization_id = $1 and w.sender_id = $2 and w.recipient_hash = m.recipient_hash
            and w.last_inbound_at <= m.at and w.last_inbound_at > m.at - interval '24 hours'
    where
        m.sender_id = $2 and m.direction = 'outbound' and m.type = 'template' and m.at > $5
        and (m.sent_at is not null or m.status = 'sending')
        and m.recipient_hash is not null and w.recipient_hash is null
) addressed
