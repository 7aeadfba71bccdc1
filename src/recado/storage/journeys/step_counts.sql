-- Numbers of the steps of journeys, without tests: what is counted up, and what commits have added since.

-- name: add
insert into step_count_changes (organization_id, env, journey_id, changes)
select organization_id, env, journey_id, changes::json
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, journey_id, changes);

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
    returning organization_id, env, journey_id, changes
),
each_one as (
    select t.organization_id, t.env, t.journey_id, c ->> 0 as step_id, c ->> 1 as counted, (c ->> 2)::bigint as change
    from taken t
    cross join lateral json_array_elements(t.changes) c
),
folded as (
    insert into step_counts as c (organization_id, env, journey_id, step_id, counted, total)
    select organization_id, env, journey_id, step_id, counted, sum(change)::bigint
    from each_one
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
        select c ->> 0, c ->> 1, (c ->> 2)::bigint
        from (
            select changes from step_count_changes
            where organization_id = $1 and env = $2 and journey_id = $3
            order by id
        ) x
        cross join lateral json_array_elements(x.changes) c
    )
) counted
group by step_id, counted;
