-- Contacts that are to enter journeys by their lists (C9.7), in turns of all organizations.

-- name: claim
-- Of each journey of organizations after $3 the oldest $1, and more where few journeys have any, and no more than $2 in all: locked until
-- the commit, without those that another has locked. Those of a journey that a person paused stay, and those of suspended
-- organizations.
with recursive {arriving},
going as materialized (
    select * from arriving w
    where not exists (select from organizations where id = w.organization_id and status = 'suspended')
)
select a.*
from going w
cross join lateral (
    select status, pausada_por, entradas_encerradas from journeys
    where organization_id = w.organization_id and env = w.env and id >= w.journey_id and id <= w.journey_id
    order by id
    limit 1
) j
cross join lateral (
    select * from journey_arrivals
    where
        organization_id = w.organization_id and env = w.env and journey_id = w.journey_id
        and (j.status <> 'pausada' or j.pausada_por is not null or j.entradas_encerradas)
    order by organization_id, env, journey_id, id
    limit greatest(
        $1::integer,
        $2::integer / greatest(1, (select count(*) from (select from going limit ($2 + $1 - 1) / $1) few))
    )
    for update skip locked
) a
limit $2;

-- name: claim_one
select * from journey_arrivals where id = $1 for update skip locked;

-- name: entered
delete from journey_arrivals where id = any(unpack($1)::bigint[]);

-- name: spread
-- Of each organization the $1 oldest that joined lists, and no more than $2 in all, arrive at the journeys of those lists.
with recursive {joining},
oldest as materialized (
    select d.*
    from joining w
    cross join lateral (
        select id, organization_id, list_id, contact_id from list_arrivals
        where organization_id = w.organization_id
        order by organization_id, id
        limit $1
    ) d
    limit $2
),
told as (
    insert into journey_arrivals (organization_id, env, journey_id, contact_id)
    select o.organization_id, j.env, j.id, o.contact_id
    from oldest o
    cross join lateral (
        select env, id from journeys
        where
            organization_id = o.organization_id and gatilho ->> 'listId' = o.list_id
            and gatilho ->> 'tipo' = 'lista' and status in ('ativa', 'pausada') and not entradas_encerradas
    ) j
    order by o.id, j.id
)
delete from list_arrivals where id = any(array(select id from oldest));

-- name: arm
-- A journey that is activated is to take in the members of its list.
insert into journey_armings (organization_id, env, journey_id, list_id, turn_at) values ($1, $2, $3, $4, $5)
on conflict do nothing;

-- name: next_arming
-- The one that waits for longest; whatever becomes of its turn, the others come first then.
with oldest as (
    select organization_id, env, journey_id from journey_armings order by turn_at limit 1 for update skip locked
)
update journey_armings a
set turn_at = greatest($1, a.turn_at + interval '1 microsecond')
from oldest o
where a.organization_id = o.organization_id and a.env = o.env and a.journey_id = o.journey_id
returning a.organization_id, a.env, a.journey_id, a.list_id, a.after_id;

-- name: size
select size from static_lists where organization_id = $1 and env = $2 and id = $3;

-- name: arrive_in_order
-- All members of a short list, in the order in which they joined.
insert into journey_arrivals (organization_id, env, journey_id, contact_id)
select organization_id, $2, $3, contact_id from static_list_members
where organization_id = $1 and list_id = $4
order by added_at, contact_id;

-- name: arrive
-- The next $6 members of a long one, after $5; answers the last of them.
with next as materialized (
    select organization_id, contact_id from static_list_members
    where organization_id = $1 and list_id = $4 and contact_id > $5
    order by organization_id, list_id, contact_id
    limit $6
),
told as (
    insert into journey_arrivals (organization_id, env, journey_id, contact_id)
    select organization_id, $2, $3, contact_id from next order by contact_id
)
select max(contact_id) as last, count(*) as count from next;

-- name: armed_up_to
update journey_armings set after_id = $4 where organization_id = $1 and env = $2 and journey_id = $3;

-- name: disarm
delete from journey_armings where organization_id = $1 and env = $2 and journey_id = $3;
