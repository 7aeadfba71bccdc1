-- Queued messages of journeys (C9.12): which journeys hold theirs back, or did, and their rows of the queue.

-- name: stood_still
-- The journeys that are paused, or were, and were moved since $1; of archived ones, whose place others took, those moved since $2.
select
    organization_id, env, id as owner, revision, case when status = 'pausada' then coalesce(pausada_em, updated_at) end as paused_at,
    pausas as past
from journeys
where
    case status when 'pausada' then true else pausas <> '{}' end -- as the index has it
    and updated_at >= $1 and (status <> 'arquivada' or updated_at >= $2)
order by updated_at;

-- name: senders
-- The senders that messages of a journey wait for, found by skipping.
with recursive found as (
    (
        select channel, sender_id from dispatch
        where organization_id = $1 and source_kind = 'journey' and owner = $2
        order by organization_id, owner, sender_id
        limit 1
    )
    union all
    select next.channel, next.sender_id
    from found f
    cross join lateral (
        select channel, sender_id from dispatch
        where organization_id = $1 and source_kind = 'journey' and owner = $2 and sender_id > f.sender_id
        order by organization_id, owner, sender_id
        limit 1
    ) next
)
select channel, sender_id from found;

-- name: hold
-- One block, of $6 rows, of the ready rows of a journey that is (still) paused, after a sender and a row ($4, $5), out of the ready index.
-- The journey is locked meanwhile: it is activated before, and then nothing is held, or after the commit, and then the release sees
-- every row that was held.
with held as materialized (
    select status from journeys
    where organization_id = $1 and env = $2 and id >= $3 and id <= $3
    order by organization_id, env, id
    limit 1
    for share
)
update dispatch d
set not_before = 'infinity', reason = 'owner_paused'
where
    d.organization_id = $1
    and d.id = any(array(
        select q.id
        from dispatch q
        where
            q.organization_id = $1 and q.source_kind = 'journey' and q.owner = $3 and (q.sender_id, q.id) > ($4, $5)
            and q.not_before is null and q.claimed_epoch is null and exists (select from held where status = 'pausada')
        order by q.organization_id, q.owner, q.sender_id, q.id
        limit $6
        for update skip locked
    ))
returning d.sender_id, d.id;
