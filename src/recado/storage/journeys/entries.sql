-- Entries (C9.7): the claims of a chain of versions on its contacts, and the executions that they begin.

-- name: lock
-- The claims that there are ($3, $4: chain and contact), in order: nobody else enters these contacts until the commit.
select e.chain_id, e.contact_id
from (
    select * from unnest($3::text[], $4::text[]) as g (chain_id, contact_id) order by chain_id, contact_id offset 0
) g
cross join lateral (
    select chain_id, contact_id from chain_entries
    where organization_id = $1 and env = $2 and chain_id = g.chain_id and contact_id = g.contact_id
    limit 1
    for update
) e;

-- name: histories
-- Of contacts that exist: what they consented to, when they entered the chain last, and whether that execution is under way ($5).
select g.chain_id, g.contact_id, c.opt_in_status, e.entered_at, x.status is not null as active
from unnest($3::text[], $4::text[]) as g (chain_id, contact_id)
cross join lateral (
    select opt_in_status from contacts
    where organization_id = $1 and env = $2 and id >= g.contact_id and id <= g.contact_id
    order by id
    limit 1
) c
left join lateral (
    select entered_at, journey_id, execution_id from chain_entries
    where organization_id = $1 and env = $2 and chain_id = g.chain_id and contact_id = g.contact_id
    limit 1
) e on true
left join lateral (
    select status from executions
    where
        organization_id = $1 and env = $2 and journey_id = e.journey_id and id >= e.execution_id and id <= e.execution_id
        and status = $5
    order by id
    limit 1
) x on true;

-- name: enter
-- Claims of those who never entered the chain; who entered it at the same moment by another commit is left out.
insert into chain_entries (organization_id, env, chain_id, contact_id, journey_id, execution_id, entered_at)
select $1, $2, g.*
from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
    as g (chain_id, contact_id, journey_id, execution_id, entered_at)
on conflict do nothing
returning chain_id, contact_id;

-- name: enter_again
-- Those whose claims this transaction has locked.
update chain_entries e
set journey_id = g.journey_id, execution_id = g.execution_id, entered_at = g.entered_at
from unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
    as g (chain_id, contact_id, journey_id, execution_id, entered_at)
where e.organization_id = $1 and e.env = $2 and e.chain_id = g.chain_id and e.contact_id = g.contact_id;

-- name: begin
-- Executions at their first step, where they are due at once.
insert into executions (
    organization_id, env, journey_id, id, chain_id, versao, contact_id, status, origem, teste, hurried, entrada, step_id,
    arrived_at, wake_at, started_at
)
select $1, $2, g.journey_id, g.id, g.chain_id, g.versao, g.contact_id, $3, g.origem, g.teste, g.hurried, g.entrada::json,
    g.step_id, g.at, g.at, g.at
from unnest(
    $4::text[], $5::text[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::boolean[], $11::boolean[],
    $12::text[], $13::text[], $14::timestamptz[]
) as g (journey_id, id, chain_id, versao, contact_id, origem, teste, hurried, entrada, step_id, at);

-- name: hold_journey
-- A journey as it is; nobody changes its state until the commit, though others may enter it meanwhile.
select gatilho ->> 'tipo' as trigger, status, entradas_encerradas as closed from journeys
where organization_id = $1 and env = $2 and id >= $3 and id <= $3
order by id
limit 1
for share;

-- name: contact_of
-- The contact with one of these keys: $3 its id, $4 the external id, $5 the phone, $6 the e-mail address (`email_key`), in this order. Of
-- several with the address, of whom $7 are looked at, it is the last one that changed.
select id
from (
    (
        select 1 as place, id from contacts
        where organization_id = $1 and env = $2 and id >= $3 and id <= $3
        order by id
        limit 1
    )
    union all
    (
        select 2, id from contacts
        where organization_id = $1 and env = $2 and external_id >= $4 and external_id <= $4
        order by external_id
        limit 1
    )
    union all
    (
        select 3, id from contacts
        where organization_id = $1 and env = $2 and phone >= $5 and phone <= $5
        order by phone
        limit 1
    )
    union all
    (
        select 4, id
        from (
            select id, updated_at from contacts
            where organization_id = $1 and env = $2 and email_key between $6 and $6
            order by email_key
            limit $7
        ) addressed
        order by updated_at desc, id desc
        limit 1
    )
) known
order by place
limit 1;
