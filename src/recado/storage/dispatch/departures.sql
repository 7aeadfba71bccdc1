-- Parts of the statement that records departures (dispatch.sql: sent).

-- name: moved
-- The rows that left the queue: what follows of them is the caller's.
select organization_id, id, held as coins, price_kind, units, batch_id, campaign_id, coins as captured, kept from released

-- name: planned
-- The sandbox's reports ($12 to $17).
planned as (
    insert into sandbox_reports (organization_id, message_id, step, due_at, sender_id, event)
    select f.organization_id, f.message_id, f.step, moment(f.due_us), f.sender_id, f.event::jsonb
    from unnest(
        unpack($12), unpack($13), unpack($14)::smallint[], unpack($15)::bigint[], unpack($16), unpack($17)
    ) as f (organization_id, message_id, step, due_us, sender_id, event)
    where (f.message_id in (select id from released)) is true
    on conflict do nothing
    returning 1
),

-- name: following
-- Their prices captured ($18 and $36 to $39), and what else follows of them.
-- All traffic of an environment waits for its wallet, so the wallet comes after everything but the totals, and is given free
-- by the end of this very statement: nothing of it waits for a turn of the program. The entries' order is given under its lock.
-- When less is held than is captured, the statement is refused and undone. What is available stays as it is, and the status too,
-- unless something is let go that was not captured: that is refused as well while the status may rise by it.
{told}{due}{reached}
written as materialized (
    select
        (select count(*) from moved) + (select count(*) from known){planned_rows} + (select count(*) from counted) + (select count(*) from touched)
        {told_rows}{due_rows}{reached_rows} as rows
),
captured as (
    select
        organization_id, env, sum(coins)::bigint as coins, sum(held - kept)::bigint as unheld,
        count(*) filter (where coins > 0) as entries
    from released
    where
        entry_id is not null and (held > 0 or price_kind is not null) -- a unit counts also at a price of nothing
        and (select rows from written) is not null
    group by 1, 2
),
locked as materialized (
    select w.organization_id, w.env, w.balance_coins, w.ledger_position, c.coins, c.unheld, c.entries
    from captured c
    join wallets w on w.organization_id = c.organization_id and w.env = c.env
    order by w.id
    for update of w
),
paid as (
    update wallets w
    set
        balance_coins = w.balance_coins - l.coins, held_coins = w.held_coins - l.unheld,
        ledger_position = w.ledger_position + l.entries, updated_at = $10
    from locked l
    where
        w.organization_id = l.organization_id and w.env = l.env and w.held_coins >= l.unheld
        and (l.unheld = l.coins or w.status = 'ok')
    returning 1
),
charged as (
    insert into ledger (organization_id, env, id, position, kind, coins, balance_after, channel, message_id, batch_id)
    select
        r.organization_id, r.env, r.entry_id, l.ledger_position + row_number() over running, 'charge', -r.coins,
        l.balance_coins - sum(r.coins) over running, r.channel, r.id,
        r.batch_id
    from locked l
    join released r on r.organization_id = l.organization_id and r.env = l.env
    where r.coins > 0
    window running as (partition by r.organization_id, r.env order by r.entry_id rows unbounded preceding)
    returning 1
),
units as (
    insert into price_volumes (organization_id, family, month, units)
    select s.organization_id, f.family, m.month, sum(s.units)
    from (
        select r.organization_id, r.price_kind, sum(r.units) as units
        from locked l
        join released r on r.organization_id = l.organization_id and r.env = l.env
        group by 1, 2
    ) s
    join unnest($36::text[], $37::text[]) as f (kind, family) on f.kind = s.price_kind
    join unnest($38::text[], $39::date[]) as m (organization_id, month) on m.organization_id = s.organization_id
    group by 1, 2, 3
    order by 1, 2, 3
    on conflict (organization_id, family, month) do update set units = price_volumes.units + excluded.units
    returning organization_id, family, month, units
){totals}

-- name: told
-- Their events with the deliveries ($23 to $35).
emitted as (
    insert into events (organization_id, id, env, type, channel, message_id)
    select organization_id, id, env, type, channel, message_id
    from unnest(unpack($23), unpack($24), unpack($25), unpack($26), unpack($27), unpack($28))
        as e (organization_id, id, env, type, channel, message_id)
    where (message_id in (select id from released)) is true
    on conflict do nothing
    returning 1
),
told as (
    insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
    select organization_id, subscription_id, id, event_id, event, moment(due_us)
    from unnest(
        unpack($29), unpack($30), unpack($31), unpack($32), unpack($33), unpack($34)::bigint[], unpack($35)
    ) as q (organization_id, subscription_id, id, event_id, event, due_us, message_id)
    where (message_id in (select id from released)) is true
    on conflict do nothing
    returning 1
),

-- name: totals
-- The batches and campaigns that they belong to.
changes as (
    select organization_id, env, kind, key, count(*) as messages, sum(coins) as coins, sum(unheld) as unheld
    from (
        select organization_id, env, 'batch' as kind, batch_id as key, coins, held - kept as unheld
        from released
        where batch_id is not null
        union all
        select organization_id, env, 'campaign', campaign_id, coins, held - kept
        from released
        where campaign_id is not null
    ) each
    where
        (select rows from written) is not null
        and (select count(*) from charged) + (select count(*) from units) is not null
    group by 1, 2, 3, 4
),
summing as materialized (
    select t.organization_id, t.env, t.kind, t.key, c.messages, c.coins, c.unheld
    from changes c
    join totals t
        on t.organization_id = c.organization_id and t.env = c.env and t.kind = c.kind and t.key = c.key
    order by 1, 2, 3, 4
    for update of t
),
summed as (
    update totals t
    set
        queued = t.queued - c.messages, sent = t.sent + c.messages, held_coins = t.held_coins - c.unheld,
        charged_coins = t.charged_coins + c.coins
    from summing c
    where t.organization_id = c.organization_id and t.env = c.env and t.kind = c.kind and t.key = c.key
    returning t.organization_id, t.env, t.kind, t.key, t.queued
)

-- name: emptied
union all
select 'emptied', organization_id, env, kind, key, queued, null from summed where queued = 0

-- name: due
-- What is due for those that have left ($40 to $46), also where a report was faster and told no more than that; the rest of what they
-- held stays with the one that holds it.
kept as materialized ( -- looked up in, as in receipts.sql
    select jsonb_object_agg(id, kept) as coins from released where kept > 0
),
due as (
    insert into message_deadlines (organization_id, env, channel, message_id, kind, due_at, held_coins)
    select
        d.organization_id, d.env, d.channel, d.message_id, d.kind, moment(d.due_us),
        case when d.holds_rest = 1 then coalesce((k.coins ->> d.message_id)::bigint, 0) else 0 end
    from unnest(
        unpack($40), unpack($41), unpack($42), unpack($43), unpack($44), unpack($45)::bigint[], unpack($46)::smallint[]
    ) as d (organization_id, env, channel, message_id, kind, due_us, holds_rest)
    cross join kept k
    where (d.message_id in (select id from moved where status = 'sent')) is true
    on conflict do nothing
    returning 1
),

-- name: answer
-- Messages that were left alone, usually none; the volumes of the month; totals of which nothing is queued any more.
select 'left' as answer, organization_id, env, null as kind, id as key, null::bigint as number, null::date as month
from given
where (id in (select id from released)) is not true
union all
select 'volume', organization_id, null, family, null, units, month from units
{emptied}
union all
select null, null, null, null, null, null, null
where case when (select count(*) from locked) <> (select count(*) from paid) then refuse_holds() end
