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
