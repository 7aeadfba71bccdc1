-- Customer events that may bring contacts into journeys (C9.7): taken in turns of all organizations.

-- name: claim
-- Of each organization after $3 the oldest $1, and more where few of them have any, and no more than $2 in all: locked until the commit,
-- without those that another has locked. Events of suspended ones wait.
with recursive {waiting},
going as materialized (
    select * from waiting w
    where not exists (select from organizations where id = w.organization_id and status = 'suspended')
)
select e.*
from going w
cross join lateral (
    select * from event_entries
    where organization_id = w.organization_id
    order by organization_id, id
    limit greatest(
        $1::integer,
        $2::integer / greatest(1, (select count(*) from (select from going limit ($2 + $1 - 1) / $1) few))
    )
    for update skip locked
) e
limit $2;

-- name: claim_one
select * from event_entries where id = $1 for update skip locked;

-- name: journeys
-- Which journeys these events may bring their contacts into, in the order of the events: of each those after the ones that have been
-- asked, and $5 of each organization.
select n, id
from (
    select g.n, j.id, row_number() over (partition by g.organization_id order by g.n, j.id) as nth
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as g (organization_id, env, name, after_id, n)
    cross join lateral (
        select id from journeys
        where
            organization_id = g.organization_id and env = g.env and gatilho ->> 'nome' = g.name and id > g.after_id
            and gatilho ->> 'tipo' = 'evento' and status in ('ativa', 'pausada') and not entradas_encerradas
        order by id
        limit $5
    ) j
) p
where nth <= $5
order by n, id;

-- name: asked
-- Journeys up to these have been asked for these events.
update event_entries e
set after_journey_id = g.journey_id
from unnest($1::bigint[], $2::text[]) as g (id, journey_id)
where e.id = g.id;

-- name: done
delete from event_entries where id = any($1::bigint[]);
