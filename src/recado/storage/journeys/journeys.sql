-- Journeys (C9): their records, their versions, and what their definitions refer to.

-- name: matches
-- $3: a state. Without the steps: a list of hundreds does not read them.
select
    organization_id, env, id, chain_id, versao, versao_de, status, name, descricao, fuso_horario, gatilho, inicio,
    reentrada, intervalo_reentrada_horas, silencio, teto_de_frequencia, meta_evento, canais, fluxo, criada_por_id,
    ativada_em, pausada_em, pausada_por, substituida_por, entradas_encerradas, arquivada_em, revision, updated_at
from journeys
where organization_id = $1 and env = $2 and ($3::text is null or status = $3);

-- name: count_of_environment
-- Archived ones are not counted.
select count(*) from journeys
where organization_id = $1 and env = $2 and status <> 'arquivada';

-- name: copies_of
-- Names that a copy cannot have: those that begin with $3.
select name from journeys where organization_id = $1 and env = $2 and starts_with(name, $3);

-- name: versions
-- Of a chain: the highest version, and the one that is still a draft.
select max(versao) as highest, max(id) filter (where status = 'rascunho') as draft from journeys
where organization_id = $1 and env = $2 and chain_id = $3;

-- name: come_first
-- Who moves a journey goes before all who come later to let somebody in (doors.sql: hold_keys). Before its row is locked.
select pg_advisory_xact_lock(hashtextextended($1::text, 0));

-- name: lock_chain
-- The versions of a journey that are not archived, in one order for all; as `come_first`.
with versions as materialized (
    select id from journeys where organization_id = $1 and env = $2 and status <> 'arquivada' and chain_id = $3
),
first as materialized (
    select pg_advisory_xact_lock(hashtextextended(v.id, 0)) from (select id from versions order by id offset 0) v
)
select from journeys
where
    (select count(*) from first) is not null
    and organization_id = $1 and env = $2 and id = any(array(select id from versions))
order by id for update;

-- name: supersede
-- The other versions of the chain that run take no entries any more: $4 takes them. $5: the states of those that run.
update journeys
set substituida_por = $4, entradas_encerradas = true, revision = revision + 1, updated_at = $6
where organization_id = $1 and env = $2 and status <> 'arquivada' and chain_id = $3 and id <> $4 and status = any($5::text[])
returning id;

-- name: pause_itself
-- $4: what it pauses for; $6: its moment; $7: the states in which that can be. $8: the coins that were lacking; $9: the last message of
-- those that failed; $10: its revision, where only that one pauses. Nobody waits here for one that somebody else is about to move.
update journeys
set
    status = $5, pausada_por = $4, pausada_em = $6, lacked_coins = $8, failed_until = coalesce($9, failed_until),
    revision = revision + 1, updated_at = $6
where
    organization_id = $1 and env = $2 and id = $3 and status = any($7::text[])
    and ($10::integer is null or revision = $10)
    and exists (
        select from journeys
        where organization_id = $1 and env = $2 and id >= $3 and id <= $3
        order by id
        limit 1
        for no key update skip locked
    )
returning revision, pausas;

-- name: go_on
-- Those of these that paused for $5, without those that another has locked, or has moved a moment ago; $4: the states in which that can be.
-- $8: how many moments of pauses are kept.
with going as materialized (
    select j.place
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    cross join lateral (
        select ctid as place from journeys
        where
            organization_id = g.organization_id and env = g.env and id >= g.id and id <= g.id
            and status = any($4::text[]) and pausada_por ->> 'motivo' = $5
        order by id
        limit 1
        for update skip locked
    ) j
)
update journeys j
set
    status = $6, pausada_por = null, pausada_em = null,
    pausas = (j.pausas || array[j.pausada_em, $7])[greatest(1, cardinality(j.pausas) + 3 - $8::integer):],
    revision = revision + 1, updated_at = $7
from going g
where j.ctid = g.place
returning j.organization_id, j.env, j.id;

-- name: archive_emptied
-- One that takes no entries; $6: the states in which that can be. Nobody waits here for one that somebody else is about to move, as all
-- executions of a turn would: it is found again (superseded_versions.py).
update journeys set status = $4, arquivada_em = $5, revision = revision + 1, updated_at = $5
where
    organization_id = $1 and env = $2 and id = $3 and entradas_encerradas and status = any($6::text[])
    and exists (
        select from journeys
        where organization_id = $1 and env = $2 and id >= $3 and id <= $3
        order by id
        limit 1
        for no key update skip locked
    )
returning id;

-- name: queued_tests
-- The tests of a journey from $4 on that have something queued: each is an owner of its own (C9.9).
select e.id
from (
    select id from executions
    where organization_id = $1 and env = $2 and journey_id = $3 and id >= $4 and teste
    order by organization_id, env, journey_id, id
) e
cross join lateral (
    select id from dispatch
    where organization_id = $1 and source_kind = 'journey' and owner = e.id
    order by organization_id, owner, sender_id, id
    limit 1
) q;

-- name: archive_idle
-- Of the next $6 versions after ($3, $4, $5) that take no entries, those of which no execution is under way ($1: their new state). There
-- are few, and they have an index of their own. One that is being moved is left to a later look.
with looked as materialized (
    select organization_id, env, id from journeys
    where entradas_encerradas and status = 'ativa' and (organization_id, env, id) > ($3, $4, $5)
    order by organization_id, env, id
    limit $6
),
idle as materialized (
    select l.organization_id, l.env, l.id
    from looked l
    left join lateral (
        select id from executions
        where organization_id = l.organization_id and env = l.env and journey_id = l.id and status = 'ativa'
        order by organization_id, env, journey_id, id
        limit 1
    ) e on true
    where e.id is null
),
free as materialized (
    select j.place
    from idle i
    cross join lateral (
        select ctid as place from journeys
        where
            organization_id = i.organization_id and env = i.env and id >= i.id and id <= i.id
            and entradas_encerradas and status = 'ativa'
        order by organization_id, env, id
        limit 1
        for update skip locked
    ) j
),
archived as (
    update journeys j set status = $1, arquivada_em = $2, revision = j.revision + 1, updated_at = $2
    from free f
    where j.ctid = f.place
    returning j.id
)
select organization_id, env, id, (id in (select id from archived)) is true as archived
from looked
order by organization_id, env, id;

-- name: users_of
-- Journeys that keep a record from being deleted. An environment has few that are not archived.
select id from journeys where organization_id = $1 and env = $2 and status <> 'arquivada' and $3::text = any(uses);

-- name: hold_used
-- Nobody deletes these records until the transaction ends, nor do callers change them. In this order for all.
with held_lists as materialized (
    select id from static_lists where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share
),
held_segments as materialized (
    select id from segments where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share
),
held_numbers as materialized (
    select id from numbers where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share
),
held_templates as materialized (
    select id from templates where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share
),
held_email_templates as materialized (
    select id from email_templates where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share
)
select id from held_lists
union all
select id from held_segments
union all
select id from held_numbers
union all
select id from held_templates
union all
select id from held_email_templates;

-- name: names
-- Of lists and segments that journeys begin with.
select id, name, size from static_lists where organization_id = $1 and env = $2 and id = any($3::text[])
union all
select id, name, null from segments where organization_id = $1 and env = $2 and id = any($4::text[]);

-- name: references
-- What there is of what a definition names, at one moment. Of a template the text that holds its variables, as much of it as
-- anybody reads (template_content.py).
select 'list' as kind, id, null as status, null as number_id, null as body from static_lists
where organization_id = $1 and env = $2 and id = any($3::text[])
union all
select 'segment', id, null, null, null from segments
where organization_id = $1 and env = $2 and id = any($4::text[])
union all
select 'number', id, status, null, null from numbers
where organization_id = $1 and env = $2 and id = any($5::text[]) and deleted_at is null
union all
select 'webhook', id, status, null, null from webhook_subscriptions
where organization_id = $1 and env = $2 and id = any($6::text[])
union all
select 'template', t.id, t.status, t.number_id, (
    select left(c.component -> 'payload' ->> 'text', 4096)
    from jsonb_array_elements(t.components) with ordinality as c (component, place)
    where upper(c.component ->> 'type') = 'BODY'
    order by c.place limit 1
)
from templates t
where t.organization_id = $1 and t.env = $2 and t.id = any($7::text[]) and t.deleted_at is null
union all
select
    'email_template', id, status, null,
    (select jsonb_agg(distinct used.name)::text from jsonb_each(placeholders) as part, jsonb_array_elements(part.value) as used (name))
from email_templates
where organization_id = $1 and env = $2 and id = any($7::text[]) and status = 'active'
union all
select 'email_sender', id, status, null, null from email_senders
where organization_id = $1 and env = $2 and is_default;

-- name: states
-- How these journeys stand ($1, $2, $3: organizations, environments, ids).
select j.organization_id, j.env, j.id, j.status, j.revision
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
cross join lateral (
    select organization_id, env, id, status, revision from journeys
    where organization_id = g.organization_id and env = g.env and id >= g.id and id <= g.id
    order by id
    limit 1
) j;
