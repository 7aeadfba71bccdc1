-- name: count_new
-- Deltas of which some say that messages were accepted: their rows are made when need be. In the order of the keys, like
-- every change of several totals.
insert into totals as t (
    organization_id, env, kind, key, accepted, queued, sent, delivered, read, failed, archived, held_coins, charged_coins,
    first_at, last_at
)
select
    g.organization_id, g.env, g.kind, g.key, g.accepted, g.queued, g.sent, g.delivered, g.read, g.failed, g.archived,
    g.held_coins, g.charged_coins, case when g.accepted > 0 then $14::timestamptz end,
    case when g.accepted > 0 then $14::timestamptz end
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]
) as g (
    organization_id, env, kind, key, accepted, queued, sent, delivered, read, failed, archived, held_coins, charged_coins
)
order by 1, 2, 3, 4
on conflict (organization_id, env, kind, key) do update
set
    accepted = t.accepted + excluded.accepted,
    queued = t.queued + excluded.queued,
    sent = t.sent + excluded.sent,
    delivered = t.delivered + excluded.delivered,
    read = t.read + excluded.read,
    failed = t.failed + excluded.failed,
    archived = t.archived + excluded.archived,
    held_coins = t.held_coins + excluded.held_coins,
    charged_coins = t.charged_coins + excluded.charged_coins,
    first_at = coalesce(t.first_at, excluded.first_at),
    last_at = greatest(t.last_at, excluded.last_at)
returning organization_id, env, kind, key, queued;

-- name: count_moved
-- Deltas of messages that were counted when they were accepted; a message from before there were totals has none.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]
    ) as g (
        organization_id, env, kind, key, accepted, queued, sent, delivered, read, failed, archived, held_coins,
        charged_coins
    )
),
locked as materialized (
    select t.organization_id, t.env, t.kind, t.key
    from given g
    join totals t
        on t.organization_id = g.organization_id and t.env = g.env and t.kind = g.kind and t.key = g.key
    order by 1, 2, 3, 4
    for update of t
)
update totals t
set
    queued = t.queued + g.queued,
    sent = t.sent + g.sent,
    delivered = t.delivered + g.delivered,
    read = t.read + g.read,
    failed = t.failed + g.failed,
    archived = t.archived + g.archived,
    held_coins = t.held_coins + g.held_coins,
    charged_coins = t.charged_coins + g.charged_coins
from locked l
join given g on g.organization_id = l.organization_id and g.env = l.env and g.kind = l.kind and g.key = l.key
where t.organization_id = l.organization_id and t.env = l.env and t.kind = l.kind and t.key = l.key
returning t.organization_id, t.env, t.kind, t.key, t.queued;
