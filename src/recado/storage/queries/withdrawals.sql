-- As everywhere, `dispatch` is touched first: its row is what a claim in progress locks. Rows are locked in the order of their
-- ids, as claims and settlements lock theirs: or a refusal and the claims of the same people's messages wait for each other.
-- What waits for its repeat (`repeat_of`) may have left, and does not end here.

-- name: opted_out
with queued as materialized (
    select d.organization_id, d.id
    from unnest($1::text[], $2::text[], $3::bigint[]) as g (organization_id, env, consent_hash)
    join dispatch d
        on d.organization_id = g.organization_id and d.env = g.env and d.consent_hash = g.consent_hash
    where d.claimed_epoch is null and d.repeat_of is null
    order by d.id
    for update of d
),
withdrawn as (
    delete from dispatch d
    using queued q
    where d.organization_id = q.organization_id and d.id = q.id and d.claimed_epoch is null and d.repeat_of is null
    returning d.organization_id, d.env, d.channel, d.id, d.coins, d.price_kind, d.owner, d.campaign_id
)
update messages m
set status = 'failed', failed_at = $4, last_error = $5, updated_at = $4
from withdrawn w
where
    m.organization_id = w.organization_id and m.env = w.env and m.channel = w.channel and m.id = w.id
    and m.status = any($6::text[])
returning m.organization_id, m.env, m.id, m.channel, w.coins, w.price_kind, w.owner, w.campaign_id;

-- name: of_contact
-- Nothing asks for the consent of a contact that is gone, so here its repeats end: they are uncertain from their last call on.
with queued as materialized (
    select id from messages where organization_id = $1 and env = $2 and contact_id = $3 and status = any($6::text[])
),
unrepeated as (
    update dispatch d
    set
        claimed_epoch = 0, claimed_at = d.repeat_of, repeat_of = null, -- of no owner: nobody waits for its call
        reason = 'uncertain', not_before = 'infinity'
    where
        d.organization_id = $1 and d.env = $2
        and d.id = any(array(
            select id from messages where organization_id = $1 and env = $2 and contact_id = $3 and status = any($7::text[])
        ))
        and d.claimed_epoch is null and d.repeat_of is not null
),
withdrawn as (
    delete from dispatch d -- not joined: planned while the queue was empty, a join would begin with all of it
    where d.organization_id = $1 and d.env = $2 and d.id = any(array(select id from queued))
        and d.claimed_epoch is null and d.repeat_of is null
    returning d.organization_id, d.env, d.channel, d.id, d.coins, d.price_kind, d.owner, d.campaign_id
)
update messages m
set status = 'archived', archived_at = $4, last_error = $5, updated_at = $4
from withdrawn w
where
    m.organization_id = w.organization_id and m.env = w.env and m.channel = w.channel and m.id = w.id
    and m.status = any($6::text[])
returning m.organization_id, m.env, m.id, m.channel, w.coins, w.price_kind, w.owner, w.campaign_id;
