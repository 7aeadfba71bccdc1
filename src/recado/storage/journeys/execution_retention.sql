-- Executions that are past their time (C32).

-- name: journeys
-- Those that have executions from before the id $3, found by skipping.
with recursive known as (
    (
        select journey_id from executions
        where organization_id = $1 and env = $2
        order by journey_id
        limit 1
    )
    union all
    select next.journey_id
    from known k
    cross join lateral (
        select journey_id from executions
        where organization_id = $1 and env = $2 and journey_id > k.journey_id
        order by journey_id
        limit 1
    ) next
)
select k.journey_id
from known k
cross join lateral (
    select id from executions
    where organization_id = $1 and env = $2 and journey_id = k.journey_id
    order by id
    limit 1
) oldest
where oldest.id < $3;

-- name: purge
-- One page of the executions of a journey, after the id $4 and before $5: those that ended before $6 go, with their trails. Answers the
-- page's last id.
with page as materialized (
    select ctid as place, id, ended_at from executions
    where organization_id = $1 and env = $2 and journey_id = $3 and id > $4 and id < $5
    order by id
    limit $7
),
trails as (
    delete from execution_steps s
    using (
        select f.place
        from page p
        cross join lateral (
            select ctid as place from execution_steps
            where organization_id = $1 and execution_id >= p.id and execution_id <= p.id
            offset 0
        ) f
        where p.ended_at < $6
    ) q
    where s.ctid = q.place
),
gone as (
    delete from executions e
    using page p
    where e.ctid = p.place and p.ended_at < $6
)
select max(id) from page;
