-- name: count_of_environment
select count(*) from webhook_subscriptions where organization_id = $1 and env = $2 and deleted_at is null;

-- name: of_organization
-- In whichever environment.
select * from webhook_subscriptions where organization_id = $1 and id = $2;

-- name: of_keys
-- These, in whichever environment.
select w.*
from unnest($1::text[], $2::text[]) as g (organization_id, id)
cross join lateral (
    select * from webhook_subscriptions
    where organization_id = g.organization_id and id = g.id
    limit 1
) w;

-- name: of_environment
-- Who takes events now; what is revoked for good takes none.
select id, status, events from webhook_subscriptions
where organization_id = $1 and env = $2 and deleted_at is null
order by id;

-- name: matches
-- $3: a status; $4: an event that they take.
select * from webhook_subscriptions
where
    organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or $4 = any(events) or '*' = any(events));

-- name: note_health
-- How endpoints fare, at most one row for each subscription. `expected`: the status that its actor knows. Where it was changed
-- meanwhile, or the endpoint is another one by now, the row is left alone, and left out of the answer.
update webhook_subscriptions w
set
    status = g.status, consecutive_failures = g.consecutive_failures, first_failure_at = g.first_failure_at,
    last_success_at = greatest(w.last_success_at, g.last_success_at),
    last_failure_at = greatest(w.last_failure_at, g.last_failure_at),
    failing_since = g.failing_since, probe_at = g.probe_at, probe_seconds = g.probe_seconds,
    revision = case when g.status = g.expected then w.revision else w.revision + 1 end,
    updated_at = case when g.status = g.expected then w.updated_at else $13 end
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::timestamptz[], $7::timestamptz[],
    $8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::integer[], $12::text[]
) as g (
    organization_id, id, expected, status, consecutive_failures, first_failure_at, last_success_at, last_failure_at,
    failing_since, probe_at, probe_seconds, url
)
where
    w.organization_id = g.organization_id and w.id = g.id and w.status = g.expected and w.url = g.url
    and w.deleted_at is null
returning w.id;

-- name: all_ids
select organization_id, id from webhook_subscriptions order by organization_id, id;

-- name: given_up
select organization_id, id from webhook_subscriptions
where status = 'failing' and failing_since <= $1
order by organization_id, id;

-- name: purge
-- Those deleted long ago, once nothing of their deliveries is left to be dropped.
delete from webhook_subscriptions w
where
    w.deleted_at < $1
    and not exists (
        select from delivery_queue q where q.organization_id = w.organization_id and q.subscription_id = w.id
    );
