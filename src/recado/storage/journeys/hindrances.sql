-- What journeys pause themselves for, and go on by (C9.7.5, C9.8.4).

-- name: any_failures
select id from journey_failures order by id limit 1;

-- name: take_failures
-- The oldest $1 messages of journeys that failed, taken with the commit.
delete from journey_failures
where id = any(array(select id from journey_failures order by id limit $1 for update skip locked))
returning organization_id, message_id;

-- name: failing
-- The steps of which one of these messages ($1, $2: organizations, messages) failed as the last of $3 in a row, and that message. What
-- failed by $4 is no failure of the step. Of several messages of a step the last one is asked for. A row begins after the one for which the
-- journey paused last.
with told as materialized (
    select s.organization_id, s.env, s.journey_id, s.step_id, max(s.message_id) as message_id
    from unnest($1::text[], $2::text[]) as g (organization_id, message_id)
    cross join lateral (
        select organization_id, env, journey_id, step_id, message_id from execution_steps
        where organization_id = g.organization_id and message_id >= g.message_id and message_id <= g.message_id
        order by organization_id, message_id
        limit 1
    ) s
    where s.journey_id is not null
    group by 1, 2, 3, 4
)
select t.organization_id, t.env, t.journey_id, t.step_id, t.message_id
from told t
cross join lateral (
    select failed_until from journeys
    where organization_id = t.organization_id and env = t.env and id >= t.journey_id and id <= t.journey_id
    order by id
    limit 1
) j
cross join lateral (
    select count(*) as failed
    from (
        select env, channel, message_id from execution_steps
        where
            organization_id = t.organization_id and journey_id = t.journey_id and step_id = t.step_id
            and message_id > coalesce(j.failed_until, '') and message_id <= t.message_id
        order by organization_id desc, journey_id desc, step_id desc, message_id desc
        limit $3
    ) s
    cross join lateral (
        select from messages
        where
            organization_id = t.organization_id and env = s.env and channel = s.channel and id = s.message_id
            and failed_at is not null and outcome_certain and (failure_code = any($4::text[])) is not true
        limit 1
    ) m
) n
where n.failed = $3
order by 1, 2, 3, 4;

-- name: without_coins
-- The next $4 journeys after this one ($1, $2, $3) that paused for want of coins, and whether their wallet has by now what a message lacked.
select j.organization_id, j.env, j.id, coalesce(w.available >= coalesce(j.lacked_coins, 1), false) as covered
from (
    select organization_id, env, id, lacked_coins from journeys
    where
        status = 'pausada' and pausada_por ->> 'motivo' = 'saldo_insuficiente'
        and (organization_id, env, id) > ($1, $2, $3)
    order by organization_id, env, id
    limit $4
) j
left join lateral (
    select balance_coins - held_coins as available from wallets
    where organization_id = j.organization_id and env = j.env
    offset 0
) w on true
order by 1, 2, 3;

-- name: label
-- What a template or a number is called, also one that is deleted.
select name from templates where organization_id = $1 and env = $2 and id = $3
union all
select name from email_templates where organization_id = $1 and env = $2 and id = $3
union all
select verified_name from numbers where organization_id = $1 and env = $2 and id = $3;
