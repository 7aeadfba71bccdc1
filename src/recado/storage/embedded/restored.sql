-- The queue of a restored database is that of its past: what left after the backup is queued in it still. Nothing of it may
-- leave again ($1: now).

-- name: end_batches
update batches
set status = 'canceled', blocks_left = 0, paused_at = null, pause_reason = null, finished_at = $1, updated_at = $1
where open and blocks_left > 0;

-- name: end_blocks
delete from batch_blocks;

-- name: end_claims
delete from claims;

-- name: end_replies
-- Answers to opt-outs of that past.
delete from opt_out_replies;

-- name: end_queue
-- Uncertain, and not failed for good: a report that still comes in is believed, and the price is charged then. Of a call that was
-- under way, or that waited for its repeat, the moment is kept.
with gone as (
    delete from dispatch
    returning
        organization_id, env, channel, id, sender_id, coins, batch_id, campaign_id,
        coalesce(claimed_at, repeat_of) as called_at
),
released as (
    update wallets w
    set held_coins = w.held_coins - g.coins, updated_at = $1
    from (select organization_id, env, sum(coins)::bigint as coins from gone group by 1, 2) g
    where w.organization_id = g.organization_id and w.env = g.env
),
counted as (
    update totals t
    set queued = t.queued - g.messages, failed = t.failed + g.messages, held_coins = t.held_coins - g.coins
    from (
        select organization_id, env, kind, key, count(*) as messages, sum(coins)::bigint as coins
        from gone
        cross join lateral (values ('batch', batch_id), ('campaign', campaign_id)) as of (kind, key)
        group by 1, 2, 3, 4
    ) g
    where t.organization_id = g.organization_id and t.env = g.env and t.kind = g.kind and t.key = g.key
),
ended as (
    update messages m
    set
        status = 'failed', last_error = 'outcome_unknown: restored from a backup', failure_code = 'outcome_unknown',
        outcome_certain = false, failed_at = $1, called_at = g.called_at, updated_at = $1
    from gone g
    where m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
    returning m.scheduled_at
),
known as ( -- as of whatever fails by unknown outcome (dispatch.sql: failed); the sandbox reports nothing of it
    insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id)
    select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id
    from gone
    where env = 'live'
    on conflict do nothing
)
select count(*) as messages, count(*) filter (where scheduled_at > $1) as scheduled from ended;
