-- How many executions of journeys there are by their states, without tests: what is counted up, and what commits have added since.

-- name: add
insert into journey_count_changes (organization_id, env, journey_id, ativa, concluida, cancelada, erro)
select *
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    as g (organization_id, env, journey_id, ativa, concluida, cancelada, erro);

-- name: fold
-- Up to $1 changes become part of the counts. Answers how many there were.
with taken as (
    delete from journey_count_changes
    where ctid = any(array(
        select ctid from journey_count_changes
        order by organization_id, env, journey_id, id
        limit $1
        for update skip locked
    ))
    returning organization_id, env, journey_id, ativa, concluida, cancelada, erro
),
folded as (
    insert into journey_counts as c (organization_id, env, journey_id, ativa, concluida, cancelada, erro)
    select
        organization_id, env, journey_id, sum(ativa)::bigint, sum(concluida)::bigint, sum(cancelada)::bigint,
        sum(erro)::bigint
    from taken
    group by organization_id, env, journey_id
    order by organization_id, env, journey_id
    on conflict (organization_id, env, journey_id) do update
    set
        ativa = c.ativa + excluded.ativa, concluida = c.concluida + excluded.concluida,
        cancelada = c.cancelada + excluded.cancelada, erro = c.erro + excluded.erro
)
select count(*) from taken;

-- name: counts
-- Of one moment, so that no change is counted twice or not at all.
select
    g.journey_id, coalesce(c.ativa, 0) + d.ativa as ativa, coalesce(c.concluida, 0) + d.concluida as concluida,
    coalesce(c.cancelada, 0) + d.cancelada as cancelada, coalesce(c.erro, 0) + d.erro as erro
from unnest($3::text[]) as g (journey_id)
left join lateral (
    select * from journey_counts
    where organization_id = $1 and env = $2 and journey_id = g.journey_id
    limit 1
) c on true
cross join lateral (
    select
        count(*) as changes, coalesce(sum(ativa), 0)::bigint as ativa, coalesce(sum(concluida), 0)::bigint as concluida,
        coalesce(sum(cancelada), 0)::bigint as cancelada, coalesce(sum(erro), 0)::bigint as erro
    from (
        select ativa, concluida, cancelada, erro from journey_count_changes
        where organization_id = $1 and env = $2 and journey_id = g.journey_id
        order by id
    ) each_one
) d
where c.journey_id is not null or d.changes > 0;
