-- The batches run with hash and merge joins off, so that they probe the indexes of the large tables however small those were
-- when the plan was made (`postgres.py`). Lists of a batch's own are therefore compared by `(id in (select …)) is true`:
-- a hashed look-up, where a join, or a bare `in`, would compare every row with every other.
-- A queue's table is empty now and huge in a minute, and the planner only knows the one or the other. So a batch finds its
-- rows of `dispatch` one by one through the key (`lateral … offset 0`) and then touches them by their place: no plan can scan
-- the queue instead. A row that another changed at the same moment has a new place, and is left alone: claims and settlements
-- answer the rows that they left, and settlements run once more for those.
-- Lists are given in the order of their ids (`rows.py: in_order`), and rows are taken in that order: two statements that want
-- the same ones, as a settlement and the reports of the same calls, do not wait for each other.
-- A block that is chosen with `limit … for update skip locked` is chosen once, as an array or a materialized list: as a plain
-- subquery it may be joined from inside, and is then chosen again, and its rows locked again, for each row of the table.

-- name: ready_senders
-- The senders that have a row ready, found by skipping through the index: its cost is that of the senders, not of the rows.
with recursive found as (
    (
        select organization_id, env, channel, sender_id
        from dispatch
        where not_before is null and claimed_epoch is null
        order by organization_id, sender_id
        limit 1
    )
    union all
    select next.organization_id, next.env, next.channel, next.sender_id
    from found f
    cross join lateral (
        select d.organization_id, d.env, d.channel, d.sender_id
        from dispatch d
        where
            d.not_before is null and d.claimed_epoch is null
            and (d.organization_id, d.sender_id) > (f.organization_id, f.sender_id)
        order by d.organization_id, d.sender_id
        limit 1
    ) next
)
select organization_id, env, channel, sender_id from found;

-- name: heads
-- Of each of these senders the first ready row of each class and owner, of $4 at most, and the first that is forced, as far as they
-- were due at $3. Found by skipping, like the senders.
select g.organization_id, g.sender_id, h.class, h.owner, h.id, h.force
from unnest($1::text[], $2::text[]) as g (organization_id, sender_id)
cross join lateral (
    with recursive heads as (
        (
            select class, owner, id, due_at, force
            from dispatch
            where
                organization_id = g.organization_id and sender_id = g.sender_id
                and not_before is null and claimed_epoch is null
            order by class, owner, due_at, id
            limit 1
        )
        union all
        select next.class, next.owner, next.id, next.due_at, next.force
        from heads f
        cross join lateral (
            select d.class, d.owner, d.id, d.due_at, d.force
            from dispatch d
            where
                d.organization_id = g.organization_id and d.sender_id = g.sender_id
                and d.not_before is null and d.claimed_epoch is null and (d.class, d.owner) > (f.class, f.owner)
            order by d.class, d.owner, d.due_at, d.id
            limit 1
        ) next
    )
    (select class, owner, id, due_at, force from heads limit $4)
    union all
    (
        select class, owner, id, due_at, force
        from dispatch
        where
            organization_id = g.organization_id and sender_id = g.sender_id and force
            and not_before is null and claimed_epoch is null
        order by id
        limit 1
    )
) h
where h.due_at <= $3;

-- name: refill
-- The next ready rows of one class of a sender: up to $5 of each of up to 16 owners after owner $4, with what a send needs.
-- Forced ones are read by themselves: thousands of them would come back here again and again instead of what they go before.
with recursive owners as (
    (
        select owner
        from dispatch
        where
            organization_id = $1 and sender_id = $2 and class = $3
            and not_before is null and claimed_epoch is null and not force and owner > $4
        order by owner
        limit 1
    )
    union all
    select next.owner
    from owners o
    cross join lateral (
        select d.owner
        from dispatch d
        where
            d.organization_id = $1 and d.sender_id = $2 and d.class = $3
            and d.not_before is null and d.claimed_epoch is null and not d.force and d.owner > o.owner
        order by d.owner
        limit 1
    ) next
),
few as (select owner from owners limit 16)
select
    d.organization_id, d.id, d.env, d.channel, d.sender_id, d.class, d.owner, d.due_at, d.ttl_ms, d.expires_at,
    d.held_base_ms, d.attempts, d.force, m.recipient, m.recipient_hash, m.type, m.template_id, m.payload, m.template_vars,
    d.repeat_of, m.contact_id, d.needs_window, d.consent_hash is not null as subject_to_consent, d.obeys_quiet_hours,
    m.details, d.batch_id is not null or d.campaign_id is not null as totaled
from few
cross join lateral (
    select *
    from dispatch q
    where
        q.organization_id = $1 and q.sender_id = $2 and q.class = $3 and q.owner = few.owner
        and q.not_before is null and q.claimed_epoch is null and not q.force
    order by q.due_at, q.id
    limit $5
) d
cross join lateral (
    select * from messages m
    where m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
    limit 1
) m;

-- name: forced
-- The first $3 forced rows of a sender, which go before all others. Mostly few; of many only these are looked up.
with first as materialized (
    select *
    from dispatch
    where organization_id = $1 and sender_id = $2 and force and not_before is null and claimed_epoch is null
    order by due_at, id
    limit $3
)
select
    d.organization_id, d.id, d.env, d.channel, d.sender_id, d.class, d.owner, d.due_at, d.ttl_ms, d.expires_at,
    d.held_base_ms, d.attempts, d.force, m.recipient, m.recipient_hash, m.type, m.template_id, m.payload, m.template_vars,
    d.repeat_of, m.contact_id, d.needs_window, d.consent_hash is not null as subject_to_consent, d.obeys_quiet_hours,
    m.details, d.batch_id is not null or d.campaign_id is not null as totaled
from first d
cross join lateral (
    select * from messages m
    where m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
    limit 1
) m
order by d.due_at, d.id;

-- name: claim
-- queued → sending, in one commit before any call begins; a repeat is `sending` already ($8: the states that may be claimed). A row
-- is lost to this claim when it was withdrawn, held or claimed meanwhile; all are when this process is no longer the owner ($6), and
-- overtaken then. `owner` shares the fence of the epoch until the commit (fence.sql). The row in dispatch is the lock; it is always touched first.
-- A batch whose answer was lost runs again: what its first run committed is known by the moment of the claim, and is ours.
-- Whose message is subject to consent ($9 and $10: environment and phone) is asked for it in the same commit: contact and
-- registry (C12.5.6), and the registry by the phone's other spellings ($11), which few have. Others pay nothing for that; all
-- three are null when nobody is asked. Each is one look-up a row, whatever the
-- planner thinks of the tables' sizes (`offset 0`), and of contacts by the one index that has the order that is asked for.
-- $12: the states that claimed messages have of channels that do not know `sending` (C10).
-- Where the comments stand that begin with `+`, a batch that asks by e-mail adds what that needs (opt_outs.py: by_email).
-- The statement leaves one note of what it took, by which a rescuer finds it (rescue.sql).
-- Those that need an open window ($4: 1) are free-form messages, and templates of a number whose tier is full. Those whose recipient
-- counts toward a tier ($4: 2) are the other templates of a number that has a limit: of one without nothing is counted.
-- Answers the rows that were not to be had, usually none, and of those that were the templates into an open window.
with owner as (
    {owner}
),
given as (
    select
        organization_id, id, recipient_hash, flags & 1 = 1 as free_form, flags & 2 = 2 as counts, moment(at_us) as at, env,
        phone, spellings /*+column*/
    from unnest(
        unpack($1), unpack($2), unpack($3)::bigint[], unpack($4)::smallint[], unpack($5)::bigint[], $9::text[], $10::text[],
        unpack($11) /*+values*/
    ) as g (organization_id, id, recipient_hash, flags, at_us, env, phone, spellings /*+column*/)
),
refused as materialized (
    select g.id
    from given g
    where
        g.phone is not null
        and (
            exists (
                select from opt_outs o
                where
                    o.organization_id = g.organization_id and o.env = g.env and o.kind = 'phone'
                    and o.hash = sha256(convert_to(g.organization_id || ':' || g.phone, 'UTF8'))
                offset 0
            )
            or (opted_out_as(g.organization_id, g.env, g.spellings)) is true
            or exists (
                select from (
                    select phone, opt_in_status from contacts
                    where organization_id = g.organization_id and env = g.env and phone >= g.phone
                    order by phone
                    limit 1
                ) c
                where c.phone = g.phone and c.opt_in_status = 'denied'
                offset 0
            )
        )
    /*+refused*/
),
taken as (
    update dispatch d
    set claimed_epoch = $6, claimed_at = q.at, attempts = d.attempts + 1
    from (
        select r.place, g.at, g.recipient_hash, g.counts
        from owner
        cross join given g
        cross join lateral (
            select ctid as place, sender_id, claimed_epoch, not_before
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where
            r.claimed_epoch is null and r.not_before is null
            and (g.id in (select id from refused)) is not true
            and (
                not g.free_form
                or exists (
                    select 1 from chat_windows w
                    where
                        w.organization_id = g.organization_id and w.sender_id = r.sender_id
                        and w.recipient_hash = g.recipient_hash
                        and w.last_inbound_at > $7::timestamptz - interval '24 hours'
                )
            )
    ) q
    where d.ctid = q.place
    returning d.organization_id, d.env, d.channel, d.id, d.sender_id, q.recipient_hash, q.counts
),
moved as (
    update messages /*month*/ m
    set status = coalesce($12::jsonb ->> m.channel, 'sending'), attempts = m.attempts + 1, updated_at = $7
    from taken t
    where
        m.organization_id = t.organization_id and m.env = t.env and m.channel = t.channel and m.id = t.id
        and m.status = any($8::text[])
    returning m.id
),
in_window as materialized ( -- templates into an open window: they count toward no tier
    select t.id
    from taken t
    where
        t.counts
        and exists (
            select 1 from chat_windows w
            where
                w.organization_id = t.organization_id and w.sender_id = t.sender_id
                and w.recipient_hash = t.recipient_hash and w.last_inbound_at > $7::timestamptz - interval '24 hours'
        )
),
counted as (
    insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at)
    select distinct t.organization_id, t.sender_id, t.recipient_hash, $7::timestamptz
    from taken t
    where t.counts and (t.id in (select id from in_window)) is not true
    order by 1, 2, 3
    on conflict (organization_id, sender_id, recipient_hash) do update set last_at = excluded.last_at
),
noted as (
    insert into claims (epoch, at, organization_ids, ids)
    select $6, $7, $1, $2 where exists (select from taken)
)
select
    g.id,
    case
        when not exists (select from hosts where epoch = $6 and ended_at is null) then 'overtaken'
        when not exists (select from owner) then 'lost' -- somebody is about to take its place
        when d.id is null or d.claimed_epoch is not null or d.not_before is not null then 'lost'
        when g.free_form then 'window_closed'
        when (g.id in (select id from refused)) is true then 'opted_out'
        else 'lost'
    end as verdict
from given g
left join lateral (
    select id, claimed_epoch, claimed_at, not_before
    from dispatch
    where organization_id = g.organization_id and id = g.id
    offset 0
) d on true
where
    (g.id in (select id from taken)) is not true
    and (d.claimed_epoch = $6 and d.claimed_at = g.at) is not true
union all
select id, 'in_window' from in_window;

-- name: sent
-- sending → sent, with the moment of departure. A report may have been faster: then only what it could not know is added.
-- $19 to $22: of those that capture less than their rows held, how much, as what, and whether the rest stays held.
-- What else belongs into the same commit, and the answer, are parts of departures.sql. Rows are taken in the order of the
-- queue, the messages, the minutes: each waits for the one before, as parts that nothing asks for run last, in any order.
with given as (
    select
        organization_id, env, channel, id, sender_id, provider_message_id, moment(sent_us) as sent_at, template_category,
        look_ups, account, adapter, gateway, waits::jsonb as waits, entry_id::id as entry_id, captured, captured_units,
        captured_kind, keeps_rest = 1 as keeps_rest
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), $6::text[], unpack($7)::bigint[], unpack($8),
        unpack($9)::smallint[], unpack({accounts}), unpack({adapters}), unpack({gateways}), unpack({waits}), unpack($18),
        unpack($19)::bigint[], unpack($20)::integer[], unpack($21), unpack($22)::smallint[]
    ) as g (
        organization_id, env, channel, id, sender_id, provider_message_id, sent_us, template_category, look_ups,
        account, adapter, gateway, waits, entry_id, captured, captured_units, captured_kind, keeps_rest
    )
),
released as (
    delete from dispatch d
    using (
        select r.place, g.env, g.channel, g.entry_id, g.captured, g.captured_units, g.captured_kind, g.keeps_rest
        from given g
        cross join lateral (
            select ctid as place, claimed_epoch, repeat_of
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where r.claimed_epoch is not null or r.repeat_of is not null
    ) q
    where d.ctid = q.place
    returning
        d.organization_id, q.env, q.channel, d.id, d.coins as held, least(q.captured, d.coins) as coins,
        case when q.captured is null then d.price_kind else q.captured_kind end as price_kind,
        coalesce(q.captured_units, d.units) as units,
        case when q.keeps_rest then d.coins - least(q.captured, d.coins) else 0 end as kept, d.batch_id, d.campaign_id,
        q.entry_id
),
moved as (
    update messages /*month*/ m
    set
        status = case when m.status in ('sending', 'queued') then 'sent' else m.status end,
        sent_at = g.sent_at,
        provider_message_id = g.provider_message_id,
        template_category = g.template_category,
        gateway = g.gateway,
        waits = g.waits,
        updated_at = $10
    from given g
    where
        (select count(*) from released) is not null
        and m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and m.status = any($11::text[])
        and (m.status <> 'queued' or (m.id in (select id from released)) is true) -- of channels without `sending`: claimed
    returning m.organization_id, m.env, m.channel, m.id, m.status, m.recipient, m.contact_id, m.sent_at
),
touched as ( -- a report that was faster may have told of another moment (customer_events.sql)
    insert into contact_touches (organization_id, env, contact_id, sent_at, message_id, channel)
    select organization_id, env, contact_id, sent_at, id, channel from moved where contact_id is not null
    on conflict do nothing
    returning 1
),
known as ( -- of a provider that gives its ids once more, as one that counts from 1 again, the latest message counts
    insert into provider_messages as p (reference, account, adapter, organization_id, env, channel, message_id)
    select distinct on (1, 2, 3) k.reference, g.account, g.adapter, g.organization_id, g.env, g.channel, g.id
    from given g
    cross join lateral (values (1, g.provider_message_id), (2, g.id)) as k (look_up, reference)
    where g.look_ups & k.look_up > 0
    order by 1, 2, 3, g.sent_at desc, g.id desc
    on conflict (reference, account, adapter) do update
    set
        organization_id = excluded.organization_id, env = excluded.env, channel = excluded.channel,
        message_id = excluded.message_id
    where p.message_id <> excluded.message_id
    returning 1
),
{planned}
counted as (
    insert into sender_minutes (organization_id, sender_id, minute, sent, marketing, uncategorized, oldest_id)
    select
        g.organization_id::id, g.sender_id::id, date_trunc('minute', g.sent_at), count(*),
        count(*) filter (where g.template_category = 'marketing'), 0, min(g.id::id)
    from given g
    where (g.id in (select id from released)) is true and (select count(*) from moved) is not null
    group by 1, 2, 3
    order by 1, 2, 3
    on conflict (organization_id, sender_id, minute) do update
    set
        sent = sender_minutes.sent + excluded.sent, marketing = sender_minutes.marketing + excluded.marketing,
        oldest_id = least(sender_minutes.oldest_id, excluded.oldest_id)
    returning 1
){following}
{answer};

-- name: failed
-- queued or sending → failed, for good ($8: the states it may leave). A row that is to fail in the queue (`queued`) is left
-- alone when a claim was faster: its call may have begun. One that waits for its repeat may have left, and cannot fail for certain
-- there: it is repeated no more, and uncertain from its last call on. Answers the rows that left the queue.
-- $9: when the last call began of a message whose outcome stayed unknown; null of the others.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::boolean[], $9::timestamptz[],
        $10::text[], $11::boolean[]
    ) as g (
        organization_id, env, channel, id, last_error, failed_at, queued, called_at, failure_code, outcome_certain
    )
),
found as materialized (
    select r.place, g.queued and r.repeat_of is not null as may_have_left
    from given g
    cross join lateral (
        select ctid as place, claimed_epoch, repeat_of
        from dispatch
        where organization_id = g.organization_id and id = g.id
        offset 0
    ) r
    where case when r.claimed_epoch is not null then not g.queued else g.queued or r.repeat_of is not null end
),
released as (
    delete from dispatch d
    using found q
    where d.ctid = q.place and not q.may_have_left
    returning
        d.organization_id, d.env, d.channel, d.id, d.sender_id, d.coins, d.price_kind, d.units, d.batch_id, d.campaign_id
),
unrepeated as (
    update dispatch d
    set
        claimed_epoch = 0, claimed_at = d.repeat_of, repeat_of = null, -- of no owner: nobody waits for its call
        reason = 'uncertain', not_before = 'infinity'
    from found q
    where d.ctid = q.place and q.may_have_left
),
moved as (
    update messages /*month*/ m
    set
        status = 'failed', last_error = g.last_error, failure_code = g.failure_code,
        outcome_certain = g.outcome_certain, failed_at = g.failed_at, called_at = g.called_at, updated_at = g.failed_at
    from given g
    where
        (g.id in (select id from released)) is true
        and m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and m.status = any($8::text[])
    returning m.id
),
known as ( -- a report that still comes in may not tell whose it is, and the row of the queue is gone
    insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id)
    select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id
    from released
    where (id in (select id from given where called_at is not null)) is true
    on conflict do nothing
)
select organization_id, id, coins, price_kind, units, batch_id, campaign_id from released;

-- name: returned
-- sending → queued: a transient refusal, or a row that never left. `unspent`: the attempt does not count (C29.2).
-- What may have left stays `sending`, though its row waits in the queue: `repeat_of` is the moment of its call, or of one before.
-- When its answer is lost it runs again, and the row may be claimed once more by then: only the claim that it names ends.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::boolean[],
        $9::timestamptz[], $13::timestamptz[]
    ) as g (organization_id, env, channel, id, not_before, reason, last_error, unspent, claimed_at, repeat_of)
),
released as (
    update dispatch d
    set
        claimed_epoch = null, claimed_at = null, not_before = q.not_before, reason = q.reason,
        attempts = d.attempts - q.unspent::int, repeat_of = coalesce(q.repeat_of, d.repeat_of)
    from (
        select r.place, g.not_before, g.reason, g.unspent, g.repeat_of
        from given g
        cross join lateral (
            select ctid as place, claimed_epoch, claimed_at
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where r.claimed_epoch = $10 and r.claimed_at = g.claimed_at
    ) q
    where d.ctid = q.place
    returning d.organization_id, d.env, d.channel, d.id, d.sender_id, d.repeat_of
),
known as ( -- as of whatever fails by unknown outcome: it may have left, and waits among what did not
    insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id)
    select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id
    from released
    where repeat_of is not null
    on conflict do nothing
),
moved as (
    update messages /*month*/ m
    set
        status = case when (g.id in (select id from released where repeat_of is null)) is true then 'queued' else m.status end,
        attempts = m.attempts - g.unspent::int, last_error = coalesce(g.last_error, m.last_error),
        updated_at = $11
    from given g
    where
        (g.id in (select id from released)) is true
        and m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and m.status = any($12::text[])
    returning m.id
)
select g.id from given g where (g.id in (select id from released)) is not true;

-- name: again
-- A message that had left, and whose state this transaction has changed to queued, is queued for another sender ($5) of its channel. $6: what
-- changes in its details; $7: its units; $8: what it holds; $9: how long it may wait, in milliseconds; $10: now; $11, $12: what it obeys;
-- $13, $14: whose it is there (belonging.py). What a journey sends obeys consent, whatever it is (C12.5.4).
with moved as (
    update messages
    set sender_id = $5, details = details || $6::text::jsonb, units = $7, attempts = 0
    where organization_id = $1 and env = $2 and channel = $3 and id = $4 and status = 'queued'
    returning class, recipient_hash, campaign_id, batch_id, journey_id
)
insert into dispatch (
    organization_id, id, env, channel, sender_id, class, owner, source_kind, due_at, ttl_ms, expires_at, held_base_ms, force,
    campaign_id, batch_id, coins, units, consent_hash, needs_window, obeys_quiet_hours, attempts
)
select
    $1, $4, $2, $3, $5, class, $13, $14, $10::timestamptz, $9::bigint,
    $10::timestamptz + $9::bigint * interval '1 millisecond', held_ms_at($1, $5, $10::timestamptz), false, campaign_id,
    batch_id, $8::bigint, $7, case when $11 or journey_id is not null then recipient_hash end, false, $12, 0
from moved;

-- name: onward
-- What a provider refused goes on by another sender of its channel: queued there, with all its attempts before it. Only the claim that it
-- names ends.
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[], $8::integer[],
        $9::timestamptz[]
    ) as g (organization_id, env, channel, id, claimed_at, sender_id, details, units, at)
),
released as (
    update dispatch d
    set
        sender_id = q.sender_id, claimed_epoch = null, claimed_at = null, not_before = null, reason = null, attempts = 0,
        repeat_of = null
    from (
        select r.place, g.sender_id
        from given g
        cross join lateral (
            select ctid as place, claimed_epoch, claimed_at
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where r.claimed_epoch = $10 and r.claimed_at = g.claimed_at
    ) q
    where d.ctid = q.place
    returning d.id
),
moved as (
    update messages /*month*/ m
    set
        status = 'queued', sender_id = g.sender_id, details = m.details || g.details::jsonb, units = g.units, attempts = 0,
        last_error = null, updated_at = g.at
    from given g
    where
        (g.id in (select id from released)) is true
        and m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and m.status = any(array['queued', 'sending'])
    returning m.id
)
select id from released;

-- name: uncertain
-- The outcome of these calls is unknown: they stay `sending` and are never sent again by themselves. From now on the moment of
-- the call stands in the place of that of the claim: a report makes it `sentAt`.
with given as (
    select * from unnest($1::text[], $2::text[], $9::timestamptz[]) as g (organization_id, id, departed_at)
),
marked as (
    update dispatch d
    set reason = 'uncertain', not_before = 'infinity', claimed_at = q.departed_at, repeat_of = null
    from (
        select r.place, g.departed_at
        from given g
        cross join lateral (
            select ctid as place, claimed_epoch
            from dispatch
            where organization_id = g.organization_id and id = g.id
            offset 0
        ) r
        where r.claimed_epoch is not null
    ) q
    where d.ctid = q.place
    returning d.id
),
planned as (
    insert into sandbox_reports (organization_id, message_id, step, due_at, sender_id, event)
    select f.organization_id, f.message_id, f.step, moment(f.due_us), f.sender_id, f.event::jsonb
    from unnest(
        unpack($3), unpack($4), unpack($5)::smallint[], unpack($6)::bigint[], unpack($7), unpack($8)
    ) as f (organization_id, message_id, step, due_us, sender_id, event)
    where (f.message_id in (select id from marked)) is true
    on conflict do nothing
)
select g.id from given g where (g.id in (select id from marked)) is not true;

-- name: give_up
-- Uncertain for 24 h, or for so long without a turn for its repeat: failed, outcome unknown (C15.4).
select organization_id, env, channel, id, claimed_at as called_at
from dispatch
where reason = 'uncertain' and claimed_at < $1
union all
select organization_id, env, channel, id, repeat_of
from dispatch
where repeat_of < $1 and claimed_epoch is null
limit $2;

-- name: hold
-- A gate of its own holds the row back: out of the ready index until not_before.
with given as (
    select *
    from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[]) as g (organization_id, id, not_before, reason)
)
update dispatch d
set not_before = q.not_before, reason = q.reason
from (
    select r.place, g.not_before, g.reason
    from given g
    cross join lateral (
        select ctid as place, claimed_epoch, not_before
        from dispatch
        where organization_id = g.organization_id and id = g.id
        offset 0
    ) r
    where r.claimed_epoch is null and r.not_before is null
) q
where d.ctid = q.place
returning d.id;

-- name: hold_template
-- Ready rows of a sender, of any class, that wait for the same template, in blocks.
update dispatch d
set not_before = 'infinity', reason = 'template_state'
where
    d.organization_id = $1
    and d.id = any(array(
        select q.id from dispatch q
        where
            q.organization_id = $1 and q.sender_id = $2 and q.template_id = $3
            and q.not_before is null and q.claimed_epoch is null
        limit $4
        for update skip locked
    ))
returning d.id;

-- name: release
-- Rows of a sender that wait for one reason (of one template, of one owner, unless null) become ready again, in blocks.
update dispatch d
set not_before = null, reason = null
where
    d.organization_id = $1
    and d.id = any(array(
        select q.id from dispatch q
        where
            q.organization_id = $1 and q.sender_id = $2 and q.reason = $3
            and ($4::text is null or q.template_id = $4) and ($6::text is null or q.owner = $6)
            and q.not_before is not null and q.claimed_epoch is null
        order by q.id
        limit $5
        for update skip locked
    ))
returning d.id;

-- name: release_due
-- Rows whose moment has come. Of one that was scheduled, the time held counts from when it was due (C14.5, TTL): looked up once
-- for all rows of a number and a moment.
with due as materialized (
    select organization_id, id, sender_id, due_at, reason = 'scheduled' as scheduled from dispatch
    where not_before <= $1 and claimed_epoch is null
    order by not_before
    limit $2
    for update skip locked
),
stood as materialized (
    select s.*, held_ms_at(s.organization_id, s.sender_id, s.due_at) as held_ms
    from (select distinct organization_id, sender_id, due_at from due where scheduled) s
)
update dispatch d
set not_before = null, reason = null, held_base_ms = greatest(d.held_base_ms, s.held_ms)
from due
left join stood s
    on due.scheduled and s.organization_id = due.organization_id and s.sender_id = due.sender_id and s.due_at = due.due_at
where d.organization_id = due.organization_id and d.id = due.id
returning d.organization_id, d.env, d.channel, d.sender_id;

-- name: release_of_each
-- When more is due than one block: up to $2 scheduled rows of each number, so that no number waits for the rows of another. The
-- numbers are found by skipping; of each only the first $3 rows that are scheduled are looked at, due or not: `release_due` finds
-- whatever lies behind them. Up to $4 numbers.
with recursive held as (
    (
        select organization_id, sender_id
        from dispatch
        where not_before is not null
        order by organization_id, sender_id
        limit 1
    )
    union all
    select next.organization_id, next.sender_id
    from held h
    cross join lateral (
        select d.organization_id, d.sender_id
        from dispatch d
        where d.not_before is not null and (d.organization_id, d.sender_id) > (h.organization_id, h.sender_id)
        order by d.organization_id, d.sender_id
        limit 1
    ) next
),
few as (select organization_id, sender_id from held limit $4),
due as materialized (
    select r.organization_id, r.id
    from few f
    cross join lateral (
        select l.organization_id, l.id
        from (
            select d.organization_id, d.id, d.not_before, d.claimed_epoch
            from dispatch d
            where
                d.organization_id = f.organization_id and d.sender_id = f.sender_id and d.reason = 'scheduled'
                and d.not_before is not null
            order by d.organization_id, d.sender_id, d.reason, d.id
            limit $3
        ) l
        where l.not_before <= $1 and l.claimed_epoch is null
        limit $2
    ) r
),
free as materialized (
    select u.organization_id, k.*
    from due u
    cross join lateral (
        select ctid as place, not_before, claimed_epoch, sender_id, due_at
        from dispatch
        where organization_id = u.organization_id and id = u.id
        offset 0
        for update skip locked
    ) k
    where k.not_before <= $1 and k.claimed_epoch is null
),
stood as materialized ( -- as in release_due
    select s.*, held_ms_at(s.organization_id, s.sender_id, s.due_at) as held_ms
    from (select distinct organization_id, sender_id, due_at from free) s
)
update dispatch d
set not_before = null, reason = null, held_base_ms = greatest(d.held_base_ms, s.held_ms)
from free f
left join stood s on s.organization_id = f.organization_id and s.sender_id = f.sender_id and s.due_at = f.due_at
where d.ctid = f.place
returning d.organization_id, d.env, d.channel, d.sender_id;

-- name: expiring
-- Rows whose time to live may have run out, with what else decides it.
select
    d.organization_id, d.env, d.channel, d.id, d.sender_id, d.owner, d.due_at, d.ttl_ms, d.held_base_ms,
    d.obeys_quiet_hours
from dispatch d
where d.expires_at <= $1 and d.claimed_epoch is null
order by d.expires_at
limit $2;

-- name: prolong
-- The time held does not count: these rows expire later than it was thought when they were stored. Waits for none that
-- another is changing: it is found again at the next look.
with given as (
    select * from unnest($1::text[], $2::text[], $3::timestamptz[]) as g (organization_id, id, expires_at)
),
free as materialized (
    select g.organization_id, g.id, g.expires_at
    from given g
    join dispatch d on d.organization_id = g.organization_id and d.id = g.id
    for update of d skip locked
)
update dispatch d
set expires_at = f.expires_at
from free f
where d.organization_id = f.organization_id and d.id = f.id;

-- name: crashed
-- The row in hand when its actor failed; at the third time it is set aside.
update dispatch
set crashes = crashes + 1
where organization_id = $1 and id = $2
returning crashes;

-- name: state
-- What a queued or sending message waits for, as far as its row knows. Without end is a very late moment here: the driver
-- reads `infinity` as one that belongs to no time zone.
select
    class, owner, due_at,
    case when not_before = 'infinity' then timestamptz '9999-12-31 00:00+00' else not_before end as not_before,
    reason, force, claimed_epoch, repeat_of, needs_window, obeys_quiet_hours
from dispatch
where organization_id = $1 and id = $2;

-- name: ahead
-- Ready rows of the same class that leave before this one, counted up to $6.
select count(*)
from (
    select 1
    from dispatch
    where
        organization_id = $1 and sender_id = $2 and class = $3 and (due_at, id) < ($4, $5)
        and not_before is null and claimed_epoch is null
    limit $6
) before;

-- name: uncertain_of_sender
-- May have left: they count toward the day of their number.
select claimed_at from dispatch
where organization_id = $1 and sender_id = $2 and reason = 'uncertain' and not_before is not null and claimed_at > $3
union all
select repeat_of from dispatch
where organization_id = $1 and sender_id = $2 and repeat_of > $3;

-- name: day_minutes
select minute, sent from sender_minutes
where organization_id = $1 and sender_id = $2 and minute > $3 and sent > 0;

-- name: tier_recipients
select recipient_hash, last_at from tier_recipients
where organization_id = $1 and sender_id = $2 and last_at > $3
order by last_at;
