-- Executions (C9.10, C9.15): those that are due, what became of them in a turn, and what is shown of them.

-- name: waiting
-- Of what there is something to do at $1: signals, what was due in a pause that is over, events, who arrives, and what is due. What
-- waits for the end of a pause is nothing to do.
select
    exists (select from execution_signals) as signals,
    exists (
        with recursive {held}
        select from held h
        cross join lateral (
            select status from journeys
            where organization_id = h.organization_id and env = h.env and id >= h.journey_id and id <= h.journey_id
            order by id
            limit 1
        ) j
        where j.status = 'ativa'
    ) as pauses,
    exists (select from event_entries) as events,
    exists (
        with recursive {arriving}
        select from arriving w
        cross join lateral (
            select status, pausada_por, entradas_encerradas from journeys
            where organization_id = w.organization_id and env = w.env and id >= w.journey_id and id <= w.journey_id
            order by id
            limit 1
        ) j
        where j.status <> 'pausada' or j.pausada_por is not null or j.entradas_encerradas
    ) as arrivals,
    exists (
        with recursive {waiting}
        select from waiting w
        where wake_at <= $1 and not exists (select from organizations where id = w.organization_id and status = 'suspended')
    ) as executions;

-- name: claim_due
-- Of organizations after $5, those that are due at $1, and no more than $3 in all: locked until the commit, without those that another
-- has locked. Each organization has $2 places, and more where few of them have something due. $4: the state that moves. What is locked
-- is asked once more: another may have moved it a moment ago. What is due of a suspended organization stays so. Here and below one row is looked
-- up by the order that only the right index has (contacts.sql).
with recursive {waiting_after},
going as materialized (
    select organization_id from waiting w
    where wake_at <= $1 and not exists (select from organizations where id = w.organization_id and status = 'suspended')
)
select e.*
from going w
cross join lateral (
    select *, ctid::text as place from executions
    where organization_id = w.organization_id and wake_at is not null and wake_at <= $1 and status = $4
    order by organization_id, wake_at
    limit greatest(
        $2::integer,
        $3::integer / greatest(1, (select count(*) from (select from going limit ($3 + $2 - 1) / $2) few))
    )
    for update skip locked
) e
limit $3;

-- name: claim
-- One that is due, as `claim_due`.
select *, ctid::text as place from executions
where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and id <= $4 and wake_at <= $5 and status = $6
order by id
limit 1
for update skip locked;

-- name: begin
-- Executions as they stand at the end of the transaction in which they entered.
insert into executions (
    organization_id, env, journey_id, id, status, motivo, step_id, arrived_at, wake_at, awaited, awaited_until, overslept,
    failures, ended_at, passed, chain_id, versao, contact_id, origem, teste, hurried, started_at, entrada
)
select
    organization_id, env, journey_id, id, status, motivo, step_id, moment(arrived_at), moment(wake_at), awaited,
    moment(awaited_until), overslept, failures, moment(ended_at), passed, chain_id, versao, contact_id, origem, teste,
    hurried, moment(started_at), entrada::json
from unnest(
    unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6), unpack($7), unpack($8)::bigint[],
    unpack($9)::bigint[], unpack($10), unpack($11)::bigint[], unpack($12)::boolean[], unpack($13)::smallint[],
    unpack($14)::bigint[], unpack($15)::smallint[], unpack($16), unpack($17)::integer[], unpack($18), unpack($19),
    unpack($20)::boolean[], unpack($21)::boolean[], unpack($22)::bigint[], unpack($23)
) as g (
    organization_id, env, journey_id, id, status, motivo, step_id, arrived_at, wake_at, awaited, awaited_until, overslept,
    failures, ended_at, passed, chain_id, versao, contact_id, origem, teste, hurried, started_at, entrada
);

-- name: save
-- What became of executions that this transaction has locked: so no row has moved since, and is found again at its place.
update executions e
set
    status = g.status, motivo = g.motivo, step_id = g.step_id, arrived_at = moment(g.arrived_at),
    wake_at = moment(g.wake_at), awaited = g.awaited, awaited_until = moment(g.awaited_until), overslept = g.overslept,
    failures = g.failures, ended_at = moment(g.ended_at), passed = g.passed
from unnest(
    unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6)::bigint[], unpack($7)::bigint[], unpack($8),
    unpack($9)::bigint[], unpack($10)::boolean[], unpack($11)::smallint[], unpack($12)::bigint[], unpack($13)::smallint[]
) as g (
    place, id, status, motivo, step_id, arrived_at, wake_at, awaited, awaited_until, overslept, failures, ended_at, passed
)
where e.ctid = g.place::tid and e.id = g.id;

-- name: emptied
-- Of these journeys those that take no entries, and of whose executions none is under way, tests included.
select g.organization_id, g.env, g.journey_id
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, journey_id)
cross join lateral (
    select entradas_encerradas as closed from journeys
    where organization_id = g.organization_id and env = g.env and id >= g.journey_id and id <= g.journey_id
    order by id
    limit 1
) j
left join lateral (
    select id from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = g.journey_id and status = 'ativa'
        and j.closed
    order by id
    limit 1
) x on true
where j.closed and x.id is null;

-- name: passed
-- Steps that were passed now. One that was passed before is refused by the key, and all of the transaction with it.
insert into execution_steps (
    organization_id, execution_id, step_id, env, tipo, at, place, resultado, detalhe, message_id, channel, capped_contact_id,
    journey_id
)
select
    organization_id, execution_id, step_id, env, tipo, moment(at), place, resultado, detalhe, message_id, channel,
    capped_contact_id, journey_id
from unnest(
    unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6)::bigint[], unpack($7)::smallint[], $8::text[],
    unpack($9), unpack($10), unpack($11), unpack($12), unpack($13)
) as g (
    organization_id, execution_id, step_id, env, tipo, at, place, resultado, detalhe, message_id, channel,
    capped_contact_id, journey_id
);

-- name: overslept
-- Up to $1 of each journey, and $2 in all, that were due while it was paused, and that goes on now ($3: its state then): locked.
with recursive {held},
chosen as materialized (
    select e.organization_id, e.env, e.journey_id, e.id
    from held p
    cross join lateral (
        select status from journeys
        where organization_id = p.organization_id and env = p.env and id >= p.journey_id and id <= p.journey_id
        order by id
        limit 1
    ) j
    cross join lateral (
        select organization_id, env, journey_id, id from executions
        where organization_id = p.organization_id and env = p.env and journey_id = p.journey_id and overslept
        order by organization_id, env, journey_id, id
        limit $1
    ) e
    where j.status = $3
    limit $2
)
select e.*
from chosen c
cross join lateral (
    select *, ctid::text as place from executions
    where
        organization_id = c.organization_id and env = c.env and journey_id = c.journey_id and id >= c.id and id <= c.id
        and overslept
    order by id
    limit 1
    for update skip locked
) e;

-- name: lock
-- One, whatever its state; nobody else changes it until the commit.
select * from executions
where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and id <= $4
order by id
limit 1
for update;

-- name: place
-- Of one that is locked: who waited for the lock has seen where it was before.
select ctid::text from executions
where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and id <= $4
order by id
limit 1;

-- name: messages_of
-- The messages that these executions made.
select s.message_id
from unnest($2::text[]) as g (execution_id)
cross join lateral (
    select message_id from execution_steps
    where
        organization_id = $1 and execution_id >= g.execution_id and execution_id <= g.execution_id
        and message_id is not null
    order by organization_id, execution_id
    limit 50 -- a way has no more steps
) s
order by s.message_id;

-- name: by_id
select * from executions
where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and id <= $4
order by id
limit 1;

-- name: steps_of
-- The trail of one, in the order of its way.
select step_id, tipo, at, resultado, detalhe, message_id from execution_steps
where organization_id = $1 and execution_id = $2
order by place;

-- name: signals
-- Of each organization after $3 the oldest $1, and no more than $2 in all: locked, without those that another has locked.
with recursive {telling}
select s.*
from telling t
cross join lateral (
    select id, organization_id, env, journey_id, message_id, contact_id from execution_signals
    where organization_id = t.organization_id
    order by organization_id, id
    limit $1
    for update skip locked
) s
limit $2;

-- name: signalled
-- The executions that signals are about: of a message that which waits for a signal ($7); of a contact those under way, but for what is tried
-- again after a failure, and of a journey that is over all of them: the next $9 that are not due at $8. $10 in all: the last signal
-- that is answered may be about more then, and nothing is said of those after it.
select g.n, x.organization_id, x.env, x.journey_id, x.id
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    as g (n, organization_id, env, journey_id, message_id, contact_id)
cross join lateral (
    select e.organization_id, e.env, e.journey_id, e.id
    from (
        select execution_id from execution_steps
        where organization_id = g.organization_id and message_id >= g.message_id and message_id <= g.message_id
        order by organization_id, message_id
        limit 1
    ) s
    cross join lateral (
        select organization_id, env, journey_id, id from executions
        where
            organization_id = g.organization_id and env = g.env and journey_id = g.journey_id
            and id >= s.execution_id and id <= s.execution_id and status = 'ativa' and awaited = $7
        order by id
        limit 1
    ) e
    union all
    (
        select organization_id, env, journey_id, id from executions
        where
            organization_id = g.organization_id and env = g.env and contact_id = g.contact_id and status = 'ativa'
            and failures = 0 and (wake_at is null or wake_at > $8)
        order by organization_id, env, contact_id, id
        limit $9
    )
    union all
    (
        select organization_id, env, journey_id, id from executions
        where
            organization_id = g.organization_id and env = g.env and journey_id = g.journey_id and status = 'ativa'
            and g.message_id is null and (wake_at is null or wake_at > $8)
        order by id
        limit $9
    )
) x
limit $10;

-- name: lock_free
-- Of these those that nobody has in hand, and that are under way: locked.
select e.*
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, journey_id, id)
cross join lateral (
    select *, ctid::text as place from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = g.journey_id and id >= g.id and id <= g.id
        and status = 'ativa'
    order by id
    limit 1
    for update skip locked
) e;

-- name: forget_signals
delete from execution_signals where id = any($1::bigint[]);

-- name: tests_from
select count(*)
from (
    select from executions
    where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and teste
    limit $5
) t;

-- name: of_contacts
-- How many of these contacts are under way: those that their refusal ends.
select count(*)
from unnest($3::text[]) as g (contact_id)
cross join lateral (
    select from executions
    where organization_id = $1 and env = $2 and contact_id = g.contact_id and status = 'ativa'
    order by organization_id, env, contact_id, id
    limit 1000 -- an environment has 200 journeys at most, and one way of a contact through each
) e;

-- name: next_of_contact
-- The next $5 executions of a contact, after $4.
select journey_id, id from executions
where organization_id = $1 and env = $2 and contact_id = $3 and id > $4
order by organization_id, env, contact_id, id
limit $5;

-- name: erase
-- What these executions were entered with.
update executions e
set entrada = '{}'
from unnest($3::text[], $4::text[]) as g (journey_id, id)
where e.organization_id = $1 and e.env = $2 and e.journey_id = g.journey_id and e.id = g.id and e.entrada::text <> '{}';

-- name: external_ids
-- By what customers know these contacts ($3).
select c.id, c.external_id
from unnest($3::text[]) as g (id)
cross join lateral (
    select id, external_id from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id
    order by id
    limit 1
) c
where c.external_id is not null;
