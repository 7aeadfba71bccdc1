-- Whether journeys take somebody in (C9.7.5).

-- name: states
select id, gatilho ->> 'tipo' as trigger, status, pausada_por is not null as by_itself, entradas_encerradas as closed, ativada_em
from journeys
where organization_id = $1 and env = $2 and id = any($3::text[]);

-- name: hold
-- These journeys, in one order for all; nobody changes their state until the commit.
select id, gatilho ->> 'tipo' as trigger, status, pausada_por is not null as by_itself, entradas_encerradas as closed, ativada_em
from journeys
where organization_id = $1 and env = $2 and id = any($3::text[])
order by id
for share skip locked;

-- name: hold_keys
-- As `hold`, of several environments; who is about to move one is waited for.
select j.*
from (
    select * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    order by organization_id, env, id
    offset 0
) g
cross join lateral (
    select
        organization_id, env, id, gatilho ->> 'tipo' as trigger, status, pausada_por is not null as by_itself,
        entradas_encerradas as closed, ativada_em
    from journeys
    where organization_id = g.organization_id and env = g.env and id >= g.id and id <= g.id
    order by id
    limit 1
    for share
) j;
