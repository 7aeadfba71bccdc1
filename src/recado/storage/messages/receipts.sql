-- name: apply
-- Delivery reports, at most one for each message. A report on a `sending` message first makes it `sent` (C29.2); what is
-- late, repeated or backward changes nothing (C15.4). Each leads to a state, and brings the states that it may leave ($10), and
-- that it may leave after an unknown outcome ($11), as the policy of its channel says. $12: `sending`; $13, $14: the states in which
-- a message arrived, and in which it did not. Answers which messages exist, and what moved.
-- A message moves from the state in which this statement saw it, and from `sending` only with its row of the queue, which is
-- its lock: claimed, or waiting for its repeat. What a report does not move keeps its row: it names what is sent elsewhere, or is of a
-- kind that the channel does not know of what it has in hand. When another changes either at the same moment the message is `busy`, and its
-- report is applied once more.
-- $15: when their calls began, of those whose outcome is not recorded yet. $17, $18: account and adapter that told it; $19: the report
-- as JSON, where the provider gives one; $20: the gateway that told it, of those that senders share.
-- A message that gets its `sent_at` here counts in its number's minute, also after an unknown outcome: `called_at` is its moment then.
with given as (
    select
        organization_id, env, channel, id, becomes, moment(at_us) as at, last_error, provider_message_id, departed_at,
        failure_code, string_to_array(leaves, ' ') as leaves, string_to_array(revives, ' ') as revives, account, adapter,
        receipt, gateway
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6)::bigint[], $7::text[], $8::text[],
        unpack($10), unpack($11), $15::timestamptz[], $16::text[], unpack($17), unpack($18), $19::text[], unpack($20)
    ) as g (
        organization_id, env, channel, id, becomes, at_us, last_error, provider_message_id, leaves, revives, departed_at,
        failure_code, account, adapter, receipt, gateway
    ) {carried}
),
seen as (
    select
        g.*, m.status, m.sent_at is null as unsent, m.price_coins, m.price_kind, m.units, m.batch_id, m.campaign_id,
        (m.status = any(g.leaves)) is true
        or (
            (m.status = any(g.revives)) is true and m.outcome_certain is false
        ) as may_move
    from given g
    join messages /*month*/ m
        on m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
),
released as (
    delete from dispatch d
    using ( -- by place, through the key: see dispatch.sql
        select r.place
        from given g
        cross join lateral (
            select ctid as place, claimed_epoch, repeat_of
            from dispatch
            where organization_id = g.organization_id and id = g.id and env = g.env and channel = g.channel
            offset 0
        ) r
        where (r.claimed_epoch is not null or r.repeat_of is not null) and g.leaves && $12::text[]
    ) q
    where d.ctid = q.place
    returning d.id, coalesce(d.claimed_at, d.repeat_of) as claimed_at
),
departures as materialized ( -- looked up in: a join would compare every report with every row that was released
    select jsonb_object_agg(id, claimed_at) as moments from released
),
settled as materialized (
    select
        s.*,
        case when d.moments ? s.id then coalesce(s.departed_at, (d.moments ->> s.id)::timestamptz) end
            as claimed_at -- null: it was not `sending`
    from seen s
    cross join departures d
),
moved as (
    update messages /*month*/ m
    set
        status = g.becomes,
        sent_at = coalesce(m.sent_at, g.claimed_at, m.called_at, g.at),
        delivered_at = case
            when g.becomes = any($13::text[])
                then coalesce(m.delivered_at, greatest(g.at, m.sent_at, g.claimed_at, m.called_at)) -- some report whole seconds
            else m.delivered_at
        end,
        read_at = case
            when g.becomes = 'read' then coalesce(m.read_at, greatest(g.at, m.sent_at, g.claimed_at, m.called_at))
            else m.read_at
        end,
        failed_at = case when g.becomes = any($14::text[]) then g.at end,
        last_error = g.last_error, failure_code = g.failure_code,
        outcome_certain = case when g.becomes = any($14::text[]) then true end,
        provider_message_id = coalesce(m.provider_message_id, g.provider_message_id),
        gateway = coalesce(m.gateway, g.gateway), -- whose answer was lost, until it comes
        receipt = case when m.recipient_hash is not null then coalesce(g.receipt::jsonb, m.receipt) end, -- else it was erased
        template_category = coalesce(
            m.template_category,
            (select t.category from templates t where t.organization_id = m.organization_id and t.id = m.template_id)
        ),
        updated_at = $9
    from settled g
    where
        m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and g.may_move and m.status = g.status
        and (g.status <> all($12::text[]) or g.claimed_at is not null)
    returning
        m.organization_id, m.env, m.channel, m.sender_id, m.id, m.sent_at, m.type, m.template_category,
        m.provider_message_id, m.contact_id, g.account, g.adapter, g.unsent as left_now,
        case when m.recipient_hash is not null then m.recipient end as recipient
),
touched as ( -- dispatch.sql: sent
    insert into contact_touches (organization_id, env, contact_id, sent_at, message_id, channel)
    select organization_id, env, contact_id, sent_at, id, channel from moved where left_now and contact_id is not null
    on conflict do nothing
),
known as ( -- dispatch.sql: sent
    insert into provider_messages as p (reference, account, adapter, organization_id, env, channel, message_id)
    select distinct on (1, 2, 3)
        provider_message_id, coalesce(account, ''), coalesce(adapter, ''), organization_id, env, channel, id
    from moved
    where left_now and provider_message_id is not null
    order by 1, 2, 3, sent_at desc, id desc
    on conflict (reference, account, adapter) do update
    set
        organization_id = excluded.organization_id, env = excluded.env, channel = excluded.channel,
        message_id = excluded.message_id
    where p.message_id <> excluded.message_id
),
counted as (
    insert into sender_minutes (organization_id, sender_id, minute, sent, marketing, uncategorized, oldest_id)
    select
        organization_id, sender_id, date_trunc('minute', sent_at), count(*),
        count(*) filter (where template_category = 'marketing'),
        count(*) filter (where type = 'template' and template_category is null), min(id)
    from moved
    where left_now
    group by 1, 2, 3
    order by 1, 2, 3
    on conflict (organization_id, sender_id, minute) do update
    set
        sent = sender_minutes.sent + excluded.sent,
        marketing = sender_minutes.marketing + excluded.marketing,
        uncategorized = sender_minutes.uncategorized + excluded.uncategorized,
        oldest_id = least(sender_minutes.oldest_id, excluded.oldest_id)
    returning 1
){reached}
select
    g.id,
    g.id in (select id from moved) as moved,
    g.may_move and (g.id in (select id from moved)) is not true as busy,
    g.status, g.price_coins, g.price_kind, g.units, g.batch_id, g.campaign_id -- as before the move
from seen g;

-- name: carried
-- Part of `apply`. Of a message that goes, or went, on by another carrier, the first one's word that it left, or failed, says nothing
-- any more. $21: by message, who carried those of which such a thing is told.
where
    not exists (
        select from messages k
        where
            k.organization_id = g.organization_id and k.env = g.env and k.channel = g.channel and k.id = g.id
            and k.details ->> 'deliveredVia' <> $21::jsonb ->> g.id
    )

-- name: owners_of_accounts
-- Whose these accounts at a channel's provider are: nobody's here while their sender is on its way to another database.
select account, organization_id, sender_id
from sender_owners w
where
    env = $1 and channel = $2 and account = any($3::text[])
    and not exists (
        select from organizations g
        where
            g.id = w.organization_id and g.moving
            and not exists (select from numbers n where n.organization_id = g.id and n.id = w.sender_id)
            and not exists (select from social_accounts s where s.organization_id = g.id and s.id = w.sender_id)
    );

-- name: messages_named
-- Which messages these references name: their ids at the provider, or ours. $1: the channels that who named them carries, $2, $3: adapter and environment of whoever
-- named them; each may come with the account that it named. An account or an adapter that is not known any more may be any. Those
-- of unknown outcome have no id there, and are found in the queue by ours; who names another account than the sender's own speaks
-- of another message. The first one found of each `n` counts.
select g.n, k.organization_id, k.message_id, k.channel
from unnest($4::text[], $5::text[]) with ordinality as g (reference, account, n)
cross join lateral (
    select organization_id, env, channel, message_id, account, adapter from provider_messages
    where reference = g.reference
    offset 0
) k
where
    k.channel = any($1::text[]) and k.adapter in ($2, '') and k.env = $3
    and (g.account is null or k.account in (g.account, ''))
union all
select g.n, d.organization_id, d.id, d.channel
from unnest($4::text[], $5::text[]) with ordinality as g (reference, account, n)
cross join lateral (
    select organization_id, env, channel, id, sender_id from dispatch
    where id = g.reference and reason = 'uncertain'
    offset 0
) d
where
    d.channel = any($1::text[]) and d.env = $3
    and (g.account is null or account_of(d.organization_id, d.env, d.channel, d.sender_id) in (g.account, ''));

-- name: reported_messages
-- Those of these messages whose recipient was not erased.
select m.*
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, channel, id)
cross join lateral (
    select organization_id, env, channel, id, recipient, status, contact_id, outcome_certain from messages
    where organization_id = g.organization_id and env = g.env and channel = g.channel and id = g.id
        and recipient_hash is not null
    offset 0
) m;

-- name: uncertain_calls
-- The messages of unknown outcome among those of $3, of channels and an environment, whose rows are locked: their answers came after all.
select q.organization_id, q.id, q.attempts, q.claimed_epoch, q.claimed_at, q.channel
from unnest($3::text[]) as g (id)
cross join lateral (
    select organization_id, id, env, channel, attempts, claimed_epoch, claimed_at from dispatch
    where id = g.id and reason = 'uncertain'
    offset 0
    for update
) q
where q.channel = any($1::text[]) and q.env = $2;

-- name: claim_inbound
-- Each inbound message once for its provider id. Answers the new ones.
insert into inbound_ids (organization_id, sender_id, provider_message_id, message_id)
select *
from unnest($1::text[], $2::text[], $3::text[], $4::text[])
    as g (organization_id, sender_id, provider_message_id, message_id)
order by 1, 2, 3
on conflict do nothing
returning message_id as id;

-- name: store_inbound
-- Inbound messages that are new; on the channels of $15 the window of 24 h opens or extends (C28.2).
with given as (
    select *
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[],
        $10::text[], $11::timestamptz[], $12::text[], $13::text[]
    ) as g (
        organization_id, env, channel, id, sender_id, recipient, recipient_hash, type, payload, provider_message_id, at,
        contact_id, link_origin
    )
),
stored as (
    insert into messages (
        organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
        payload, provider_message_id, delivered_at, updated_at, contact_id,
        link_origin
    )
    select
        organization_id, env, channel, id, 'inbound', 'delivered', type, sender_id, recipient, recipient_hash, 1, false,
        payload::json, provider_message_id, at, $14, contact_id, link_origin::json
    from given
)
insert into chat_windows (organization_id, sender_id, recipient_hash, last_inbound_at)
select organization_id, sender_id, recipient_hash, max(at)
from given
where channel = any($15::text[])
group by 1, 2, 3
order by 1, 2, 3
on conflict (organization_id, sender_id, recipient_hash) do update
set last_inbound_at = greatest(chat_windows.last_inbound_at, excluded.last_inbound_at);

-- name: quoted_inbound
-- Which inbound messages these provider ids became.
select i.organization_id, i.sender_id, i.provider_message_id, i.message_id
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, sender_id, provider_message_id)
join inbound_ids i
    on
        i.organization_id = g.organization_id and i.sender_id = g.sender_id
        and i.provider_message_id = g.provider_message_id;

-- name: inbound_of
-- The message that a provider's inbound id became.
select message_id from inbound_ids where organization_id = $1 and sender_id = $2 and provider_message_id = $3;

-- name: park
insert into parked_reports (channel, adapter, env, organization_id, sender_id, event, retry_at, give_up_at)
select channel, adapter, env, organization_id, sender_id, event::jsonb, retry_at, give_up_at
from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[]
) as g (channel, adapter, env, organization_id, sender_id, event, retry_at, give_up_at);

-- name: take_parked
-- Reports whose message may be known by now. They are gone when the transaction commits.
delete from parked_reports
where id = any(array(
    select id from parked_reports where retry_at <= $1 order by retry_at, id limit $2 for update skip locked
))
returning id, channel, adapter, env, organization_id, sender_id, event, give_up_at;

-- name: put_off
-- The first of those, which fails alone, waits until $2, or goes when its time is over: then the answer is true.
with first as materialized (
    select id, give_up_at from parked_reports where retry_at <= $1 order by retry_at, id limit 1
),
waits as (
    update parked_reports p set retry_at = $2 from first f where p.id = f.id and f.give_up_at > $1
),
gone as (
    delete from parked_reports p using first f where p.id = f.id and f.give_up_at <= $1 returning p.id
)
select exists (select from gone);

-- name: take_sandbox
-- Sandbox reports that are due, each with channel, one of $3, and environment of its message. They are gone when the transaction commits.
with due as materialized (
    select ctid as place from sandbox_reports
    where due_at <= $1
    order by due_at
    limit $2
    for update skip locked
),
taken as (
    delete from sandbox_reports s
    using due
    where s.ctid = due.place
    returning s.organization_id, s.message_id, s.step, s.due_at, s.sender_id, s.event
)
select t.*, m.channel, m.env
from taken t
cross join lateral (
    select channel, env from messages
    where organization_id = t.organization_id and env in ('test', 'live') and channel = any($3::text[]) and id = t.message_id
    offset 0
) m;

-- name: next_sandbox
select min(due_at) from sandbox_reports;

-- name: store_callbacks
insert into callbacks (channel, adapter, sha256, body, received_at, headers)
select channel, adapter, sha256, body, received_at, headers
from unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::timestamptz[], $6::jsonb[])
    as g (channel, adapter, sha256, body, received_at, headers)
on conflict (channel, adapter, sha256) do nothing;

-- name: open_callbacks
-- The oldest callbacks after $5 that are not processed yet, but those of $3 and of the sources $4: at most $1, of about $2 bytes together,
-- one at least.
select id, channel, adapter, headers, body
from (
    select id, channel, adapter, headers, body, sum(octet_length(body)) over (order by id) - octet_length(body) as before
    from (
        select id, channel, adapter, headers, body from callbacks
        where
            processed_at is null and id > $5 and id <> all($3::bigint[]) and channel || '/' || adapter <> all($4::text[])
        order by id
        limit $1
    ) oldest
) summed
where before < $2
order by id;

-- name: newest_open
select coalesce(max(id), 0) from callbacks where processed_at is null;

-- name: open_callback
select id, channel, adapter, headers, body from callbacks where id = $1 and processed_at is null;

-- name: callbacks_processed
update callbacks c
set processed_at = $3, failure = g.failure
from unnest($1::bigint[], $2::text[]) as g (id, failure)
where c.id = g.id;

-- name: purge_callbacks
delete from callbacks
where id = any(array(select id from callbacks where received_at < $1 order by received_at limit $2));
