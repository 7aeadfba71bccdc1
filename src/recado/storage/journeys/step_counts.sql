-- Numbers of the steps of journeys, without tests: what is counted up, and what commits have added since.

-- name: add
insert into step_count_changes (organization_id, env, journey_id, step_id, counted, change)
select *
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
    as g (organization_id, env, journey_id, step_id, counted, change);

-- name: fold
-- Up to $1 changes become part of the counts. Answers how many there were.
with taken as (
    delete from step_count_changes
    where ctid = any(array(
        select ctid from step_count_changes
        order by organization_id, env, journey_id, id
        limit $1
        for update skip locked
    ))
    returning organization_id, env, journey_id, step_id, counted, change
),
folded as (
    insert into step_counts as c (organization_id, env, journey_id, step_id, counted, total)
    select organization_id, env, journey_id, step_id, counted, sum(change)::bigint
    from taken
    group by organization_id, env, journey_id, step_id, counted
    order by organization_id, env, journey_id, step_id, counted
    on conflict (organization_id, env, journey_id, step_id, counted) do update
    set total = c.total + excluded.total
)
select count(*) from taken;

-- name: counts
-- Of one moment, so that no change is counted twice or not at all.
select step_id, counted, sum(number)::bigint as total
from (
    (
        select step_id, counted, total as number from step_counts
        where organization_id = $1 and env = $2 and journey_id = $3
        order by step_id, counted
    )
    union all
    (
        select step_id, counted, change from step_count_changes
        where organization_id = $1 and env = $2 and journey_id = $3
        order by id
    )
) counted
group by step_id, counted;
