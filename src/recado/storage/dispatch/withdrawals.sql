-- As everywhere, `dispatch` is touched first: its row is what a claim in progress locks. Rows are locked in the order of their
-- ids, as claims and settlements lock theirs: or a refusal and the claims of the same people's messages wait for each other.
-- What waits for its repeat (`repeat_of`) may have left, and does not end here.

-- name: opted_out
-- One block, of $8 rows, of what waits for these recipients before an id each. $9: also for those of whom earlier rows are being
-- withdrawn already; else they are left to that.
with chosen as materialized (
    select d.organization_id, d.id
    from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as g (organization_id, env, consent_hash, before_id)
    cross join lateral (
        select organization_id, id from dispatch
        where
            organization_id = g.organization_id and env = g.env and consent_hash = g.consent_hash
            and id < g.before_id and claimed_epoch is null and repeat_of is null
        offset 0
    ) d
    where
        $9
        or not exists (
            select from withdrawals w
            where
                w.organization_id = g.organization_id and w.env = g.env and w.kind = 'opted_out'
                and w.name = g.consent_hash::text
        )
    limit $8
),
queued as materialized (
    select d.organization_id, d.id
    from chosen c
    join dispatch d on d.organization_id = c.organization_id and d.id = c.id
    where d.claimed_epoch is null and d.repeat_of is null
    order by d.id
    for update of d
),
withdrawn as (
    delete from dispatch d
    using queued q
    where d.organization_id = q.organization_id and d.id = q.id and d.claimed_epoch is null and d.repeat_of is null
    returning d.organization_id, d.env, d.channel, d.id, d.coins, d.price_kind, d.units, d.batch_id, d.campaign_id
)
update messages m
set
    status = 'failed', failed_at = $5, last_error = $6, failure_code = $10, outcome_certain = true, updated_at = $5
from withdrawn w
where
    m.organization_id = w.organization_id and m.env = w.env and m.channel = w.channel and m.id = w.id
    and m.status = any($7::text[])
returning m.organization_id, m.env, m.id, m.channel, w.coins, w.price_kind, w.units, w.batch_id, w.campaign_id;

-- name: left
-- For which of these recipients more waits before an id each, and how many: no more than $5 are counted of each.
select g.organization_id, g.env, g.consent_hash, c.n
from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as g (organization_id, env, consent_hash, before_id)
cross join lateral (
    select count(*) as n
    from (
        select from dispatch
        where
            organization_id = g.organization_id and env = g.env and consent_hash = g.consent_hash
            and id < g.before_id and claimed_epoch is null and repeat_of is null
        limit $5
    ) found
) c
where c.n > 0;

-- name: waiting_of_contact
-- The next $6 messages of a contact, after $4, that are in one of these states ($5).
select id
from messages
where organization_id = $1 and env = $2 and contact_id = $3 and id > $4 and status = any($5::text[])
order by id
limit $6;

-- name: of_contact
-- Of these messages ($3, in their order): archived, or what their channel has in its place ($8). Nothing asks for the consent of a contact that is gone, so here repeats end: they are
-- uncertain from their last call on.
with unrepeated as (
    update dispatch d
    set
        claimed_epoch = 0, claimed_at = d.repeat_of, repeat_of = null, -- of no owner: nobody waits for its call
        reason = 'uncertain', not_before = 'infinity'
    where
        d.organization_id = $1 and d.env = $2 and d.id = any($3::text[])
        and d.claimed_epoch is null and d.repeat_of is not null
),
withdrawn as (
    delete from dispatch d -- not joined: planned while the queue was empty, a join would begin with all of it
    where d.organization_id = $1 and d.env = $2 and d.id = any($3::text[])
        and d.claimed_epoch is null and d.repeat_of is null
    returning d.organization_id, d.env, d.channel, d.id, d.coins, d.price_kind, d.units, d.batch_id, d.campaign_id
)
update messages m
set
    status = $8::jsonb ->> m.channel,
    archived_at = case $8::jsonb ->> m.channel when 'archived' then $4::timestamptz end,
    failed_at = case $8::jsonb ->> m.channel when 'failed' then $4::timestamptz end,
    last_error = $5, failure_code = $7, outcome_certain = true, updated_at = $4
from withdrawn w
where
    m.organization_id = w.organization_id and m.env = w.env and m.channel = w.channel and m.id = w.id
    and m.status = any($6::text[])
returning m.organization_id, m.env, m.id, m.channel, m.status, w.coins, w.price_kind, w.units, w.batch_id, w.campaign_id;

-- name: in_hand
-- Those of these messages ($2) that are in the queue still, in a statement of its own: a claim that `of_contact` waited for is seen here. What
-- is uncertain does not come back.
select id from dispatch
where organization_id = $1 and id = any($2::text[]) and reason is distinct from 'uncertain'
order by id;

-- name: waiting_of_journeys
-- The next $3 messages that wait of these journeys ($2).
select q.id
from unnest($2::text[]) as g (journey_id)
cross join lateral (
    select id from dispatch
    where organization_id = $1 and source_kind = 'journey' and owner = g.journey_id and claimed_epoch is null
    order by organization_id, owner, sender_id, id
    limit $3
) q
limit $3;

-- name: left_of_journeys
-- Of which of these journeys ($3) a message waits, or is in hand and may come back; or which were archived after $4, so that a commit
-- may still be under way that had read them before.
select g.journey_id
from unnest($3::text[]) as g (journey_id)
left join lateral (
    select id from dispatch
    where
        organization_id = $1 and source_kind = 'journey' and owner = g.journey_id
        and (claimed_epoch is null or reason is distinct from 'uncertain')
    order by organization_id, owner, sender_id, id
    limit 1
) q on true
left join lateral (
    select id from journeys
    where organization_id = $1 and env = $2 and id >= g.journey_id and id <= g.journey_id and arquivada_em > $4
    order by organization_id, env, id
    limit 1
) j on true
where q.id is not null or j.id is not null;

-- name: note
-- Something is left of these. One that is noted already goes on up to the later id.
insert into withdrawals (organization_id, env, kind, name, before_id)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
on conflict (organization_id, env, kind, name) do update
set before_id = greatest(withdrawals.before_id, excluded.before_id);

-- name: noted
-- All that are noted.
select organization_id, env, kind, name, before_id from withdrawals;

-- name: next
-- The first $1 of each environment and kind, which are found by skipping: an import may have noted very many of one.
with recursive groups as (
    (
        select organization_id, env, kind
        from withdrawals
        order by organization_id, env, kind
        limit 1
    )
    union all
    select next.organization_id, next.env, next.kind
    from groups g
    cross join lateral (
        select w.organization_id, w.env, w.kind
        from withdrawals w
        where (w.organization_id, w.env, w.kind) > (g.organization_id, g.env, g.kind)
        order by w.organization_id, w.env, w.kind
        limit 1
    ) next
)
select w.organization_id, w.env, w.kind, w.name, w.before_id
from groups g
cross join lateral (
    select * from withdrawals
    where organization_id = g.organization_id and env = g.env and kind = g.kind
    order by name
    limit $1
) w
order by w.organization_id, w.env, w.kind, w.name;

-- name: finish
-- Nothing is left of these; one that was noted once more meanwhile stays.
delete from withdrawals w
using unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as g (organization_id, env, kind, name, before_id)
where
    w.organization_id = g.organization_id and w.env = g.env and w.kind = g.kind and w.name = g.name
    and w.before_id = g.before_id;
