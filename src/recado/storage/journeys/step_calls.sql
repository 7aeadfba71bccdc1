-- The calls of webhook steps (C9.13): which are to be made, by whom, and what they came to. Executions are locked before these rows; who
-- claims some locks these alone, and waits for nobody.

-- name: want
-- A call of each of these steps is to be made from $9 on; one that is to be made already stays as it is.
insert into step_calls as c (
    organization_id, env, journey_id, execution_id, step_id, webhook_id, event_id, delivery_id, wanted_at
)
select g.*, $9::timestamptz
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
    as g (organization_id, env, journey_id, execution_id, step_id, webhook_id, event_id, delivery_id)
order by 1, 4
on conflict (organization_id, execution_id, step_id) do update
set wanted_at = excluded.wanted_at
where c.wanted_at is null;

-- name: facts
-- What executions at webhook steps decide by: the calls that were made there, whether one is under way, and the subscription's state.
select g.n, c.made, c.status, c.ended_at, c.refused, c.claimed_at is not null as under_way, w.status as subscription
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    as g (n, organization_id, env, execution_id, step_id, webhook_id)
left join lateral (
    select made, status, ended_at, refused, claimed_at from step_calls
    where organization_id = g.organization_id and execution_id = g.execution_id and step_id = g.step_id
    limit 1
) c on true
left join lateral (
    select status from webhook_subscriptions
    where organization_id = g.organization_id and id = g.webhook_id and env = g.env
    limit 1
) w on true;

-- name: waiting
-- The next $3 subscriptions after $1 and $2 of which calls are to be made, found by skipping; calls of suspended organizations wait.
with recursive waiting as (
    (
        select organization_id, webhook_id from step_calls
        where wanted_at is not null and claimed_at is null and (organization_id, webhook_id) > ($1::text, $2::text)
        order by organization_id, webhook_id
        limit 1
    )
    union all
    select next.organization_id, next.webhook_id
    from waiting w
    cross join lateral (
        select organization_id, webhook_id from step_calls
        where
            wanted_at is not null and claimed_at is null
            and (organization_id, webhook_id) > (w.organization_id, w.webhook_id)
        order by organization_id, webhook_id
        limit 1
    ) next
)
select organization_id, webhook_id from waiting w
where not exists (select from organizations where id = w.organization_id and status = 'suspended')
limit $3;

-- name: claim
-- Of each of these subscriptions as many calls as given, the oldest: under way from $4 on.
with chosen as materialized (
    select c.organization_id, c.execution_id, c.step_id
    from unnest($1::text[], $2::text[], $3::integer[]) as g (organization_id, webhook_id, room)
    cross join lateral (
        select organization_id, execution_id, step_id from step_calls
        where
            organization_id = g.organization_id and webhook_id = g.webhook_id and wanted_at is not null
            and claimed_at is null
        order by wanted_at
        limit g.room
        for update skip locked
    ) c
)
update step_calls c
set claimed_at = $4
from chosen h
where c.organization_id = h.organization_id and c.execution_id = h.execution_id and c.step_id = h.step_id
returning c.*;

-- name: release
-- Up to $2 calls that were under way before $1, or all (null), are to be made once more: who made them is gone.
with lost as materialized (
    select organization_id, execution_id, step_id from step_calls
    where claimed_at is not null and ($1::timestamptz is null or claimed_at < $1)
    order by claimed_at
    limit $2
    for update skip locked
)
update step_calls c
set claimed_at = null
from lost l
where c.organization_id = l.organization_id and c.execution_id = l.execution_id and c.step_id = l.step_id;

-- name: told
-- What calls tell, and what may keep them from being made. Without `contact_id` the execution is over, or stands elsewhere.
select
    g.n, e.contact_id, e.entrada, e.teste, j.name as journey_name, j.versao, j.status as journey_status,
    c.id is not null as contact_known, c.external_id, c.opt_in_status
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    as g (n, organization_id, env, journey_id, execution_id, step_id)
left join lateral (
    select contact_id, entrada, teste from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = g.journey_id and id >= g.execution_id
        and id <= g.execution_id and status = 'ativa' and step_id = g.step_id
    order by id
    limit 1
) e on true
left join lateral (
    select name, versao, status from journeys
    where organization_id = g.organization_id and env = g.env and id >= g.journey_id and id <= g.journey_id
    order by id
    limit 1
) j on true
left join lateral (
    select id, external_id, opt_in_status from contacts
    where organization_id = g.organization_id and env = g.env and id >= e.contact_id and id <= e.contact_id
    order by id
    limit 1
) c on true;

-- name: hold
-- The executions of these calls that stand there still: locked, in the order of their keys.
select e.organization_id, e.id
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    as g (organization_id, env, journey_id, execution_id, step_id)
cross join lateral (
    select organization_id, id from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = g.journey_id and id >= g.execution_id
        and id <= g.execution_id and status = 'ativa' and step_id = g.step_id
    order by id
    limit 1
    for update
) e;

-- name: settle
-- What became of calls, told by who made them: what another has claimed since then is left alone. `called`: there was a call.
update step_calls c
set
    wanted_at = null, claimed_at = null, refused = g.refused,
    made = c.made + case when g.called then 1 else 0 end,
    status = case when g.called then g.status else c.status end,
    ended_at = case when g.called then g.ended_at else c.ended_at end
from unnest(
    $1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::boolean[], $6::smallint[], $7::timestamptz[], $8::boolean[]
) as g (organization_id, execution_id, step_id, claimed_at, called, status, ended_at, refused)
where
    c.organization_id = g.organization_id and c.execution_id = g.execution_id and c.step_id = g.step_id
    and c.claimed_at is not distinct from g.claimed_at
returning c.organization_id, c.env, c.journey_id, c.execution_id;

-- name: wake
-- These executions are due at $5. They are locked: so no row has moved since, and is found again at its place.
update executions e
set wake_at = $5
from (
    select x.place
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as h (organization_id, env, journey_id, id)
    cross join lateral (
        select ctid as place from executions
        where
            organization_id = h.organization_id and env = h.env and journey_id = h.journey_id and id >= h.id
            and id <= h.id
        order by id
        limit 1
    ) x
) g
where e.ctid = g.place;

-- name: forget
-- The calls of these steps, whatever they came to.
delete from step_calls c
using unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, execution_id, step_id)
where c.organization_id = g.organization_id and c.execution_id = g.execution_id and c.step_id = g.step_id;
