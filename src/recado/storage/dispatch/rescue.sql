-- Claims are noted by statement (dispatch.sql: claim), in a table of their own: the rows of a dead process are found through
-- it by their keys, however long the queue is. A note is gone when what it names is settled.
-- An epoch is dead when no host has it any more: what a living one has in hand, whether younger or older, is its own.

-- name: send_again
-- What a dead process, or a call that never came back, had in hand, where the provider answers a repeat of the same message as
-- it answered the first (C29.2): its row waits in the queue for the delay of its attempt ($5, seconds by attempt). The message
-- stays `sending`, as it may have left. After the last attempt the row stays too, to become uncertain. $7: also of dead processes.
with again as (
    update dispatch d
    set
        claimed_epoch = null, claimed_at = null, repeat_of = d.claimed_at, reason = 'retry',
        not_before = $4::timestamptz + make_interval(secs => ($5::double precision[])[d.attempts])
    from claims c
    cross join lateral unnest(unpack(c.organization_ids), unpack(c.ids)) as g (organization_id, id)
    cross join lateral (
        select ctid as place
        from dispatch
        where
            organization_id = g.organization_id and id = g.id
            and env = $1 and channel = $6 and not direct and claimed_epoch is not null and reason is distinct from 'uncertain'
            and (claimed_epoch = $2 and claimed_at < $3 or $7 and claimed_epoch not in (select epoch from hosts where ended_at is null))
            and attempts between 1 and cardinality($5::double precision[])
        offset 0
    ) r
    where
        (c.epoch = $2 and c.at < $3 or $7 and c.epoch not in (select epoch from hosts where ended_at is null))
        and d.ctid = r.place
    returning d.organization_id, d.env, d.channel, d.id, d.sender_id
),
known as ( -- dispatch.sql: returned
    insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id)
    select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id from again
    on conflict do nothing
)
select id from again;

-- name: in_hand
-- What the owner of epoch $1 had claimed and not settled.
select r.organization_id, r.env, r.channel, r.id, r.claimed_at, r.direct
from claims c
cross join lateral unnest(unpack(c.organization_ids), unpack(c.ids)) as g (organization_id, id)
cross join lateral (
    select organization_id, env, channel, id, claimed_at, direct
    from dispatch
    where
        organization_id = g.organization_id and id = g.id
        and claimed_epoch = $1 and reason is distinct from 'uncertain'
    offset 0
) r
where c.epoch = $1;

-- name: departed
-- The calls of the owner of epoch $1 that had begun, with their moments: a report makes them `sentAt`.
update dispatch d
set claimed_at = r.at
from (
    select p.place, greatest(p.claimed_at, g.at) as at
    from unnest($2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, id, at)
    cross join lateral (
        select ctid as place, claimed_at
        from dispatch
        where organization_id = g.organization_id and id = g.id and claimed_epoch = $1
        offset 0
    ) p
) r
where d.ctid = r.place;

-- name: rescue
-- What a dead process, or a call that never came back, had in hand is uncertain: it may have left. Its notes are settled, but for
-- those of a row that another statement was changing at the same moment: the next look finds it by its note. $3: also of dead ones.
with found as materialized (
    select c.ctid as note, r.place, g.id
    from claims c
    cross join lateral unnest(unpack(c.organization_ids), unpack(c.ids)) as g (organization_id, id)
    cross join lateral (
        select ctid as place
        from dispatch
        where
            organization_id = g.organization_id and id = g.id
            and claimed_epoch is not null and reason is distinct from 'uncertain'
            and (claimed_epoch = $1 and claimed_at < $2 or $3 and claimed_epoch not in (select epoch from hosts where ended_at is null))
        offset 0
    ) r
    where c.epoch = $1 and c.at < $2 or $3 and c.epoch not in (select epoch from hosts where ended_at is null)
),
marked as (
    update dispatch d
    set reason = 'uncertain', not_before = 'infinity', repeat_of = null
    from found f
    where d.ctid = f.place
    returning d.id
),
settled as (
    delete from claims c
    where
        (c.epoch = $1 and c.at < $2 or $3 and c.epoch not in (select epoch from hosts where ended_at is null))
        and (c.ctid in (select note from found where (id in (select id from marked)) is not true)) is not true
)
select id from marked;

-- name: forget_settled
-- Our notes of before $2 that name nothing under way any more.
delete from claims c
where
    c.epoch = $1 and c.at < $2
    and not exists (
        select
        from unnest(unpack(c.organization_ids), unpack(c.ids)) as g (organization_id, id)
        cross join lateral (
            select claimed_epoch, reason
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where r.claimed_epoch is not null and r.reason is distinct from 'uncertain'
    );
