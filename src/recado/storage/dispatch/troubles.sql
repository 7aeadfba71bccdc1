-- What an operator is told of at a glance. Each reads a bounded number of rows.

-- name: ready_messages
-- Of what is due by $1 and that no gate holds: how many of the first $2, and the oldest of these with its number.
select count(*) as count, min(due_at) as oldest, (array_agg(sender_id order by due_at))[1] as place
from (
    select due_at, sender_id from dispatch
    where not_before is null and claimed_epoch is null and due_at <= $1
    limit $2
) ready;

-- name: due_deliveries
select count(*) as count, min(due_at) as oldest, (array_agg(subscription_id order by due_at))[1] as place
from (select due_at, subscription_id from delivery_queue where due_at <= $1 limit $2) due;

-- name: failing_subscriptions
select id from webhook_subscriptions where status = 'failing' and deleted_at is null order by failing_since limit $1;
