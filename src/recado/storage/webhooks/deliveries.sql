-- Every row is found through its whole key (`lateral … offset 0`), whatever the planner believed of a table that was still
-- empty: see dispatch.sql. `attempts >= 0` is true of every row: only queries that name it may use the index by due time.

-- name: telling
-- Deliveries of `found`, in its order, with what they tell. The error is that of the failure: of a message that was sent again
-- since, `last_error` names the one in its place. Contacts have many indexes: only the key has the order (contacts.sql).
-- Where the table of a month is named, what is told of other messages lacks their columns (deliveries.py: _told_in).
select
    d.id, d.attempts, d.event_id, e.env, e.type, e.channel, e.message_id, e.data, e.test,
    m.direction, m.type as message_type, m.recipient, m.sender_id, m.contact_id, c.external_id as contact_external_id,
    m.campaign_id, m.template_id, m.batch_id, m.metadata, m.provider_message_id, m.scheduled_at, m.sent_at, m.delivered_at,
    m.read_at, m.failed_at, m.attempts as message_attempts, coalesce(m.original_error, m.last_error) as message_error,
    case when e.type like '%.received' then m.payload end as payload, m.details, m.units, m.failure_code
from ({found}) d
cross join lateral (
    select env, type, channel, message_id, data, test from events where organization_id = $1 and id = d.event_id offset 0
) e
left join lateral (
    select * from messages /*month*/
    where organization_id = $1 and env = e.env and channel = e.channel and id = e.message_id
    offset 0
) m on true
left join lateral (
    select external_id from contacts
    where organization_id = $1 and env = e.env and id >= m.contact_id and id <= m.contact_id
    order by id
    limit 1
) c on true;

-- name: due
-- The next deliveries of a subscription, oldest first. $5: those that are in hand already.
select id, event_id, attempts
from (
    select id, event_id, attempts
    from delivery_queue
    where organization_id = $1 and subscription_id = $2 and due_at <= $3 and attempts >= 0
    order by due_at, id
    limit $4
) next
where (id in (select known.id from unnest($5::text[]) as known (id))) is not true

-- name: due_of
-- Deliveries that are named: what was committed a moment ago is found without a walk through the queue, whose index still
-- holds everything that was delivered since the last vacuum.
select q.id, q.event_id, q.attempts
from unnest(unpack($4)) as g (id)
cross join lateral (
    select id, event_id, attempts
    from delivery_queue
    where organization_id = $1 and subscription_id = $2 and id = g.id and due_at <= $3
    offset 0
) q

-- name: never_queued
-- An event whose delivery is none of the queue's.
select $2::text as event_id, null::text as id, 0 as attempts

-- name: waiting
-- The subscriptions that have something to do, found by skipping from one to the next.
with recursive found as (
    (
        select organization_id, subscription_id, due_at
        from delivery_queue
        where attempts >= 0
        order by organization_id, subscription_id, due_at
        limit 1
    )
    union all
    select next.organization_id, next.subscription_id, next.due_at
    from found f
    cross join lateral (
        select q.organization_id, q.subscription_id, q.due_at
        from delivery_queue q
        where (q.organization_id, q.subscription_id) > (f.organization_id, f.subscription_id) and q.attempts >= 0
        order by q.organization_id, q.subscription_id, q.due_at
        limit 1
    ) next
)
select f.organization_id, f.subscription_id
from found f
join webhook_subscriptions w on w.organization_id = f.organization_id and w.id = f.subscription_id
where
    w.status = 'revoked'
    or (w.status = 'active' and f.due_at <= $1)
    or (w.status = 'failing' and (w.probe_at <= $1 or w.failing_since <= $2));

-- name: settle
-- The results of attempts. `outcome` null: tried again at due_at. $10, the attempts made before, guards against being run twice.
with given as (
    select
        organization_id, subscription_id, id, outcome, moment(at_us) as at, last_status, last_error, attempt,
        moment(due_us) as due_at, attempts
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4), unpack($5)::bigint[], unpack($6)::smallint[], $7::text[],
        unpack($8), unpack($9)::bigint[], unpack($10)::smallint[]
    ) as g (
        organization_id, subscription_id, id, outcome, at_us, last_status, last_error, attempt, due_us, attempts
    )
),
gone as (
    delete from delivery_queue q
    using (
        select r.place, g.*
        from given g
        cross join lateral (
            select ctid as place from delivery_queue
            where organization_id = g.organization_id and subscription_id = g.subscription_id and id = g.id
            offset 0
        ) r
        where g.outcome is not null
    ) g
    where q.ctid = g.place
    returning
        q.organization_id, q.subscription_id, q.id, q.event_id, q.event, g.outcome, g.at, q.attempts + 1 as attempts,
        g.last_status, g.last_error, q.history || g.attempt::jsonb as history, q.replayed
),
logged as (
    insert into deliveries (
        organization_id, subscription_id, id, event_id, event, status, settled_at, attempts, last_status, last_error,
        history, replayed
    )
    select
        organization_id, subscription_id, id, event_id, event, outcome, at, attempts, last_status, last_error, history,
        replayed
    from gone
    on conflict do nothing
)
update delivery_queue q
set
    due_at = g.due_at, attempts = q.attempts + 1, last_status = g.last_status, last_error = g.last_error,
    history = q.history || g.attempt::jsonb
from (
    select r.place, g.*
    from given g
    cross join lateral (
        select ctid as place, attempts as made from delivery_queue
        where organization_id = g.organization_id and subscription_id = g.subscription_id and id = g.id
        offset 0
    ) r
    where g.outcome is null and r.made = g.attempts
) g
where q.ctid = g.place;

-- name: drop
-- Deliveries that will not be tried any more: a block of those whose `{id}` is below $3.
with chosen as materialized (
    select ctid as place from delivery_queue
    where organization_id = $1 and subscription_id = $2 and {id} < $3
    order by id
    limit $6
    for update skip locked
),
gone as (
    delete from delivery_queue q
    using chosen c
    where q.ctid = c.place -- by the key it may read the whole backlog for each row
    returning q.*
)
insert into deliveries (
    organization_id, subscription_id, id, event_id, event, status, settled_at, attempts, last_status, last_error,
    history, replayed
)
select
    organization_id, subscription_id, id, event_id, event, 'dropped', $4, attempts, last_status,
    coalesce(last_error, $5), history, replayed
from gone
on conflict do nothing;

-- name: insert_settled
-- A delivery that was made outside the queue: a test.
insert into deliveries (
    organization_id, subscription_id, id, event_id, event, status, settled_at, attempts, last_status, last_error,
    history, replayed
) values ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, false);

-- name: page
-- Of each, the message that its event tells of: null where it tells of none, or is gone.
select d.*, e.message_id
from (
    (
        select
            id, event_id, event, 'pending' as status, attempts, last_status, last_error, due_at as next_attempt_at,
            null::timestamptz as settled_at, history
        from delivery_queue
        where
            organization_id = $1 and subscription_id = $2 and id >= $3 and id < $4
            and coalesce($5::text, 'pending') = 'pending' and ($6::text is null or event = $6)
        order by id desc
        limit $7
    )
    union all
    (
        select
            id, event_id, event, status, attempts, last_status, last_error, null::timestamptz as next_attempt_at,
            settled_at, history
        from deliveries
        where
            organization_id = $1 and subscription_id = $2 and id >= $3 and id < $4
            and ($5::text is null or status = $5) and ($6::text is null or event = $6)
        order by id desc
        limit $7
    )
) d
left join lateral (select message_id from events where organization_id = $1 and id = d.event_id offset 0) e on true
order by d.id desc
limit $7;

-- name: of_event
-- The deliveries in one table of an event `told`: the first is looked for in its range, by the key; replays have an index.
(
    select * from {deliveries}
    where
        organization_id = $1 and subscription_id = $2 and id >= told.first and id < told.before
        and event_id = told.event_id and not replayed
    order by id
    limit 1
)
union all
(
    select * from {deliveries}
    where organization_id = $1 and subscription_id = $2 and event_id = told.event_id and replayed
)

-- name: page_of_events
-- The same of the events $7 alone, whose first deliveries are from $8 to $9.
select d.*, e.message_id
from unnest($7::text[], $8::text[], $9::text[]) as told (event_id, first, before)
cross join lateral (
    select
        id, event_id, event, 'pending' as status, attempts, last_status, last_error, due_at as next_attempt_at,
        null::timestamptz as settled_at, history
    from ({of_queue}) q
    where coalesce($5::text, 'pending') = 'pending'
    union all
    select
        id, event_id, event, status, attempts, last_status, last_error, null::timestamptz as next_attempt_at,
        settled_at, history
    from ({of_log}) l
    where $5::text is null or status = $5
) d
left join lateral (select message_id from events where organization_id = $1 and id = d.event_id offset 0) e on true
where d.id >= $3 and d.id < $4
order by d.id desc
limit $6;

-- name: purge
delete from deliveries
where
    organization_id = $1 and subscription_id = $2
    and id = any(array(
        select id from deliveries
        where organization_id = $1 and subscription_id = $2 and id < $3
        order by id
        limit $4
    ));
