-- name: numbers
-- Those of an environment after $3, in the order of their ids; $4 at most.
select
    organization_id, env, id, display_phone, status, quality_rating, messaging_tier, per_second, per_day, operator_paused_at
from numbers
where organization_id = $1 and env = $2 and deleted_at is null and id > $3
order by id
limit $4

-- name: all_numbers
-- Those of the installation after number $2 of organization $1.
select
    organization_id, env, id, display_phone, status, quality_rating, messaging_tier, per_second, per_day, operator_paused_at
from numbers
where deleted_at is null and (organization_id, id) > ($1, $2)
order by organization_id, id
limit $3

-- name: numbers_of
-- Those that are named, if they are not deleted.
select
    organization_id, env, id, display_phone, status, quality_rating, messaging_tier, per_second, per_day, operator_paused_at
from numbers
where (organization_id, id) in (select * from unnest($1::text[], $2::text[])) and deleted_at is null

-- name: changes
-- How many numbers each of these environments has, and which of them were changed since $3, deleted ones too, $5 at most; whether its
-- organization is suspended.
select
    g.organization_id, g.env, c.*, array(select id from organizations where id = g.organization_id and status = $4) as suspended
from unnest($1::text[], $2::text[]) as g (organization_id, env)
cross join lateral (
    select
        count(*) filter (where deleted_at is null) as numbers,
        (array_agg(organization_id) filter (where updated_at > $3))[1:$5] as organization_ids,
        (array_agg(id) filter (where updated_at > $3))[1:$5] as ids
    from numbers
    where organization_id = g.organization_id and env = g.env
) c

-- name: all_changes
select
    count(*) filter (where deleted_at is null) as numbers,
    (array_agg(organization_id) filter (where updated_at > $1))[1:$3] as organization_ids,
    (array_agg(id) filter (where updated_at > $1))[1:$3] as ids,
    array(select id from organizations where status = $2) as suspended
from numbers

-- name: number
select
    n.organization_id, n.env, n.id, n.display_phone, n.status, n.quality_rating, n.messaging_tier, n.per_second, n.per_day,
    n.operator_paused_at, o.status as organization_status
from numbers n
join organizations o on o.id = n.organization_id
where n.organization_id = $1 and n.env = $2 and n.id = $3 and n.deleted_at is null

-- name: owner_of_number
-- Of whichever organization: the administrator names a number alone.
select organization_id, env from numbers where id = $1 and deleted_at is null

-- name: queues
-- What waits of each sender of these environments, by class and by what holds it back.
select q.*
from unnest($1::text[], $2::text[]) as g (organization_id, env)
cross join lateral (
    select
        organization_id, env, sender_id, channel, class, claimed_epoch is not null as claimed, reason, count(*) as messages,
        min(due_at) as first_due, min(not_before) filter (where not_before < 'infinity') as first_release
    from dispatch
    where organization_id = g.organization_id and env = g.env
    group by organization_id, env, sender_id, channel, class, claimed_epoch is not null, reason
) q

-- name: queue_of_sender
-- The same of one sender, ready rows and held ones each through its own index.
select
    organization_id, env, sender_id, channel, class, claimed_epoch is not null as claimed, reason, count(*) as messages,
    min(due_at) as first_due, min(not_before) filter (where not_before < 'infinity') as first_release
from (
    select organization_id, env, sender_id, channel, class, claimed_epoch, reason, due_at, not_before
    from dispatch where organization_id = $1 and sender_id = $2 and not_before is null
    union all
    select organization_id, env, sender_id, channel, class, claimed_epoch, reason, due_at, not_before
    from dispatch where organization_id = $1 and sender_id = $2 and not_before is not null
) d
group by organization_id, env, sender_id, channel, class, claimed_epoch is not null, reason

-- name: all_queues
select
    organization_id, env, sender_id, channel, class, claimed_epoch is not null as claimed, reason, count(*) as messages,
    min(due_at) as first_due, min(not_before) filter (where not_before < 'infinity') as first_release
from dispatch
group by organization_id, env, sender_id, channel, class, claimed_epoch is not null, reason

-- name: usage
-- What numbers without an actor have used of their day and of their tier. $3: since when.
select
    g.id,
    coalesce((
        select sum(m.sent) from sender_minutes m
        where m.organization_id = g.organization_id and m.sender_id = g.id and m.minute >= $3
    ), 0)::bigint as sent,
    (
        select count(*) from tier_recipients t
        where t.organization_id = g.organization_id and t.sender_id = g.id and t.last_at > $3
    ) as recipients
from unnest($1::text[], $2::text[]) as g (organization_id, id)

-- name: subscriptions
-- Of these environments, with what is queued for each: counted up to $3, the oldest by its id.
select w.organization_id, w.env, w.id, w.status, w.probe_at, q.backlog, q.oldest_id
from unnest($1::text[], $2::text[]) as g (organization_id, env)
cross join lateral (
    select organization_id, env, id, status, probe_at from webhook_subscriptions
    where organization_id = g.organization_id and env = g.env and deleted_at is null
    offset 0
) w
cross join lateral (
    select count(*) as backlog, min(id) as oldest_id
    from (
        select id from delivery_queue
        where organization_id = w.organization_id and subscription_id = w.id
        order by id
        limit $3
    ) head
) q
order by w.organization_id, w.id

-- name: all_subscriptions
select w.organization_id, w.env, w.id, w.status, w.probe_at, q.backlog, q.oldest_id
from webhook_subscriptions w
cross join lateral (
    select count(*) as backlog, min(id) as oldest_id
    from (
        select id from delivery_queue
        where organization_id = w.organization_id and subscription_id = w.id
        order by id
        limit $1
    ) head
) q
where w.deleted_at is null
order by w.organization_id, w.id

-- name: subscription_ids
select id from webhook_subscriptions where organization_id = $1 and env = $2

-- name: minutes
select minute, sent from sender_minutes where organization_id = $1 and sender_id = $2 and minute >= $3

-- name: queue_totals
-- What has not left, of all organizations: by class and by what holds it.
select
    channel, class, coalesce(reason, case when claimed_epoch is null then 'ready' else 'sending' end) as held_by,
    count(*) as messages, min(due_at) filter (where claimed_epoch is null) as oldest_due
from dispatch
group by channel, class, held_by

-- name: backlogs
select
    (select count(*) from delivery_queue) as deliveries,
    c.callbacks, c.large_callbacks
from (
    select count(*) as callbacks, count(*) filter (where octet_length(body) > $1) as large_callbacks
    from callbacks where processed_at is null
) c
