-- name: insert
insert into webhook_subscriptions (
    organization_id, id, env, url, secret_cipher, secret_version, headers_cipher, events, description, include_pii,
    max_attempts, backoff_seconds, status, created_by_id, revision, updated_at
) values ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14)
returning *;

-- name: lock_organization
select from organizations where id = $1 for no key update;

-- name: count_of_environment
select count(*) from webhook_subscriptions where organization_id = $1 and env = $2 and deleted_at is null;

-- name: by_id
select * from webhook_subscriptions where organization_id = $1 and id = $2 and ($3::text is null or env = $3);

-- name: by_id_locked
select * from webhook_subscriptions where organization_id = $1 and env = $2 and id = $3 for update;

-- name: of_environment
-- Who takes events now; what is revoked for good takes none.
select id, status, events from webhook_subscriptions
where organization_id = $1 and env = $2 and deleted_at is null
order by id;

-- name: page
select * from webhook_subscriptions
where
    organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or $4 = any(events) or '*' = any(events))
order by id desc limit $5 offset $6;

-- name: page_count
select count(*) from webhook_subscriptions
where
    organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or $4 = any(events) or '*' = any(events));

-- name: save
update webhook_subscriptions set
    url = $5, secret_cipher = $6, secret_version = $7, previous_secret_cipher = $8, previous_secret_until = $9,
    headers_cipher = $10, events = $11, description = $12, include_pii = $13, max_attempts = $14, backoff_seconds = $15,
    status = $16, consecutive_failures = $17, first_failure_at = $18, failing_since = $19, probe_at = $20,
    probe_seconds = $21, deleted_at = $22, revision = revision + 1, updated_at = $23
where organization_id = $1 and env = $2 and id = $3 and revision = $4
returning *;

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
