-- Whether journeys take in whom something other than a caller brings (C9.7.5).

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
