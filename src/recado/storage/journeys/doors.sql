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

-- name: taken_over
-- Since when the versions have run whose place these took, and that the same event brought contacts into; one that a person has paused
-- takes nobody in.
select j.id, min(p.ativada_em) as since
from journeys j
join journeys p on p.organization_id = j.organization_id and p.env = j.env and p.chain_id = j.chain_id
where
    j.organization_id = $1 and j.env = $2 and j.id = any($3::text[]) and p.substituida_por = j.id
    and (p.status <> 'pausada' or p.pausada_por is not null)
    and p.gatilho ->> 'tipo' = 'evento' and p.gatilho ->> 'nome' = j.gatilho ->> 'nome'
group by j.id;

-- name: hold_keys
-- As `hold`, of several environments; who is about to move one is waited for, and goes before all who come after: who holds rows for
-- share waits for nobody who wants them alone, and would keep that one waiting for ever (journeys.sql: come_first).
select j.*
from (
    select g.*, pg_advisory_xact_lock_shared(hashtextextended(g.id, 0))
    from (
        select * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
        order by organization_id::id, env, id::id -- as whoever locks the versions of a chain, whatever the collation
        offset 0
    ) g
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
