-- Contacts that are to enter journeys by their lists (C9.7), in turns of all organizations.

-- name: claim
-- Of each journey of organizations after $3 the oldest $1, and no more than $2 in all: locked until the commit, without those that
-- another has locked. Those of a journey that a person paused stay. Journeys are found by skipping.
with recursive arriving as (
    (
        select organization_id, env, journey_id from journey_arrivals
        where organization_id > $3
        order by organization_id, env, journey_id
        limit 1
    )
    union all
    select next.organization_id, next.env, next.journey_id
    from arriving w
    cross join lateral (
        select organization_id, env, journey_id from journey_arrivals
        where (organization_id, env, journey_id) > (w.organization_id, w.env, w.journey_id)
        order by organization_id, env, journey_id
        limit 1
    ) next
),
oldest as materialized (
    select d.id
    from arriving w
    cross join lateral (
        select status, pausada_por from journeys
        where organization_id = w.organization_id and env = w.env and id >= w.journey_id and id <= w.journey_id
        order by id
        limit 1
    ) j
    cross join lateral (
        select id from journey_arrivals
        where organization_id = w.organization_id and env = w.env and journey_id = w.journey_id
        order by organization_id, env, journey_id, id
        limit $1
    ) d
    where j.status <> 'pausada' or j.pausada_por is not null
    limit $2
)
select e.*
from oldest o
cross join lateral (
    select * from journey_arrivals
    where id >= o.id and id <= o.id
    order by id
    limit 1
    for update skip locked
) e;

-- name: claim_one
select * from journey_arrivals where id = $1 for update skip locked;

-- name: entered
delete from journey_arrivals where id = any($1::bigint[]);

-- name: arm
-- A journey that is activated is to take in the members of its list.
insert into journey_armings (organization_id, env, journey_id, list_id) values ($1, $2, $3, $4) on conflict do nothing;

-- name: next_arming
select * from journey_armings
order by organization_id, env, journey_id
limit 1
for update skip locked;

-- name: armed
-- All members that the list has now, in the order in which they joined.
with done as (
    delete from journey_armings where organization_id = $1 and env = $2 and journey_id = $3
)
insert into journey_arrivals (organization_id, env, journey_id, contact_id)
select $1, $2, $3, contact_id from static_list_members
where organization_id = $1 and list_id = $4
order by added_at, contact_id;
