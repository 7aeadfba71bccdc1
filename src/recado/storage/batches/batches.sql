-- See dispatch.sql on how batched statements find their rows.

-- name: make
-- Batches with the first messages of each, or (`fresh` 0) the next messages of batches that exist: each with its place in
-- the queue. A batch whose idempotency key is taken is left out; so is one that an earlier run of the same statement
-- committed. With $46 the prices of their messages are held (holds.sql). Answers the batches that this run left out: usually
-- none.
with heads as materialized (
    select
        organization_id, env, id, fresh = 1 as fresh, name, channel, sender_id, type, template_id, payload, class, campaign_id,
        status, requested, accepted, skipped, skipped_reasons, errors, moment(scheduled_us) as scheduled_at, ttl_ms,
        held_base_ms, blocks_left, held_coins, moment(made_us) as made_at, moment(coalesce(scheduled_us, made_us)) as due_at,
        created_by_id, key_hash, fingerprint, first_id, last_id,
        (select a.name from accounts a where a.id = g.created_by_id and a.organization_id = g.organization_id) as sent_by_name
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4)::smallint[], $5::text[], unpack($6), unpack($7), unpack($8), unpack($9),
        unpack($10), unpack($11)::smallint[], $12::text[], unpack($13), unpack($14)::integer[], unpack($15)::integer[],
        unpack($16)::integer[], unpack($17), unpack($18), unpack($19)::bigint[], unpack($20)::bigint[],
        unpack($21)::bigint[], unpack($22)::integer[], unpack($23)::bigint[], unpack($24)::bigint[], unpack($25),
        $26::bytea[], $27::bytea[], unpack($51), unpack($52)
    ) as g (
        organization_id, env, id, fresh, name, channel, sender_id, type, template_id, payload, class, campaign_id, status,
        requested, accepted, skipped, skipped_reasons, errors, scheduled_us, ttl_ms, held_base_ms, blocks_left, held_coins,
        made_us, created_by_id, key_hash, fingerprint, first_id, last_id
    )
),
rows as (
    select
        batch_id, id, recipient, recipient_hash, template_vars, metadata, coins, price_kind, type, template_id, payload,
        sender_id, campaign_id, held_base_ms, contact_id, flags & 1 = 1 as needs_window,
        flags & 2 = 2 as subject_to_consent, flags & 4 = 4 as obeys_quiet_hours, coalesce(units, 1) as units, details
    from unnest(
        unpack($28), unpack($29), unpack($30), unpack($31)::bigint[], unpack($32), unpack($33), unpack($34)::bigint[],
        unpack($35), unpack($36), unpack($37), unpack($38), unpack($39), $40::text[], unpack($41)::bigint[],
        unpack($47), unpack($48)::smallint[], unpack($49)::integer[], unpack($50)
    ) as g (
        batch_id, id, recipient, recipient_hash, template_vars, metadata, coins, price_kind, type, template_id, payload,
        sender_id, campaign_id, held_base_ms, contact_id, flags, units, details
    )
),
codes as materialized ( -- among the rows of a resend: each lives as long as its own kind (C15.4)
    select t.id
    from (
        select h.organization_id, r.template_id from heads h join rows r on r.batch_id = h.id where r.template_id is not null
        group by 1, 2
    ) g
    cross join lateral (
        select id from templates
        where organization_id = g.organization_id and id = g.template_id and category = 'authentication'
        offset 0
    ) t
),
bound as (
    insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, message_id)
    select organization_id, env, key_hash, fingerprint, made_at, id
    from heads
    where key_hash is not null
    order by organization_id, env, key_hash
    on conflict do nothing
    returning message_id
),
made as (
    insert into batches (
        organization_id, env, id, name, channel, sender_id, type, template_id, payload, class, campaign_id, status, requested,
        skipped, skipped_reasons, errors, scheduled_at, ttl_ms, held_base_ms, blocks_left, open, created_by_id, started_at,
        finished_at, updated_at
    )
    select
        organization_id, env, id, name, channel, sender_id, type, template_id, payload::json, class, campaign_id, status,
        requested, skipped, skipped_reasons::jsonb, errors::jsonb, scheduled_at, ttl_ms, held_base_ms, blocks_left,
        status <> 'failed', created_by_id, case when status <> 'failed' then made_at end,
        case when status = 'failed' then made_at end, made_at
    from heads
    where fresh and (key_hash is null or id in (select message_id from bound))
    on conflict do nothing
    returning id
),
live as (
    select id from made
    union all
    select id from heads where not fresh
),
ranged as (
    insert into batch_ranges (organization_id, batch_id, first_id, last_id)
    select organization_id, id, first_id, last_id
    from heads
    where first_id is not null and (id in (select id from live)) is true
    on conflict do nothing
),
kept as (
    insert into batch_blocks (organization_id, batch_id, number, recipients)
    select g.organization_id, g.batch_id, g.number, g.recipients::json
    from unnest($42::text[], $43::text[], $44::integer[], $45::text[]) as g (organization_id, batch_id, number, recipients)
    where (g.batch_id in (select id from made)) is true
    on conflict do nothing
),
counted as (
    insert into totals (organization_id, env, kind, key, accepted, queued, held_coins, first_at, last_at)
    select
        h.organization_id, h.env, 'batch', h.id, h.accepted, h.accepted, h.held_coins,
        case when h.accepted > 0 then h.made_at end, case when h.accepted > 0 then h.made_at end
    from heads h
    where (h.id in (select id from made)) is true
    on conflict do nothing
),
stored as (
    insert into messages /*month*/ (
        organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
        template_id, payload, template_vars, metadata, campaign_id, batch_id, contact_id, scheduled_at, price_coins,
        price_kind, units, details, sent_by_account_id, sent_by_name, updated_at
    )
    select
        h.organization_id, h.env, h.channel, r.id, 'outbound', 'queued', coalesce(r.type, h.type),
        coalesce(r.sender_id, h.sender_id), r.recipient, r.recipient_hash, h.class, false,
        coalesce(r.template_id, h.template_id), coalesce(r.payload, h.payload)::json, r.template_vars::json,
        r.metadata::json, coalesce(r.campaign_id, h.campaign_id), h.id, r.contact_id, h.scheduled_at, r.coins, r.price_kind,
        r.units, r.details::jsonb,
        case when h.sent_by_name is not null then h.created_by_id end, h.sent_by_name, h.made_at -- C15.2.5
    from heads h
    join rows r on r.batch_id = h.id
    where (h.id in (select id from live)) is true
    on conflict do nothing
),
queued as (
    insert into dispatch (
        organization_id, id, env, channel, sender_id, class, owner, source_kind, batch_id, due_at, not_before, reason,
        ttl_ms, expires_at, held_base_ms, force, template_id, coins, price_kind, units, campaign_id, consent_hash,
        needs_window, obeys_quiet_hours
    )
    select
        h.organization_id, r.id, h.env, h.channel, coalesce(r.sender_id, h.sender_id),
        case when r.needs_window then least(h.class, 1) else h.class end, -- as in messages.sql
        h.id, 'batch', h.id, h.due_at,
        case when h.due_at > h.made_at then h.due_at end, case when h.due_at > h.made_at then 'scheduled' end,
        l.ttl_ms, h.due_at + l.ttl_ms * interval '1 millisecond',
        coalesce(r.held_base_ms, h.held_base_ms), false, coalesce(r.template_id, h.template_id), coalesce(r.coins, 0),
        r.price_kind, r.units, coalesce(r.campaign_id, h.campaign_id),
        case when r.subject_to_consent then r.recipient_hash end, -- C12.5.4
        r.needs_window, r.obeys_quiet_hours
    from heads h
    join rows r on r.batch_id = h.id
    cross join lateral (
        select
            case when (r.template_id in (select id from codes)) is true then least(h.ttl_ms, 600000) else h.ttl_ms end
                as ttl_ms -- ten minutes: C14.5
    ) l
    where (h.id in (select id from live)) is true
    on conflict do nothing
    returning organization_id, env, coins
),
{held}
select h.id from heads h where (h.id in (select id from live)) is not true
union all
{refused};

-- name: senders_of
-- The numbers that messages of a batch wait for.
select distinct q.sender_id
from batch_ranges r
cross join lateral (
    select sender_id from dispatch
    where organization_id = $1 and id between r.first_id and r.last_id and owner = $2
    offset 0
) q
where r.organization_id = $1 and r.batch_id = $2;

-- name: windows
-- Which of these recipients wrote to the number after $4: a free-form message reaches them (C15.2.2).
select w.recipient_hash
from unnest($3::bigint[]) as g (recipient_hash)
join chat_windows w
    on w.organization_id = $1 and w.sender_id = $2 and w.recipient_hash = g.recipient_hash and w.last_inbound_at > $4;

-- name: by_id
select b.*, t.accepted, t.queued, t.sent, t.delivered, t.read, t.failed, t.archived, t.held_coins, t.charged_coins
from batches b
join totals t
    on t.organization_id = b.organization_id and t.env = b.env and t.kind = 'batch' and t.key = b.id
where b.organization_id = $1 and b.env = $2 and b.id = $3;

-- name: page
select b.*, t.accepted, t.queued, t.sent, t.delivered, t.read, t.failed, t.archived, t.held_coins, t.charged_coins
from batches b
join totals t
    on t.organization_id = b.organization_id and t.env = b.env and t.kind = 'batch' and t.key = b.id
where
    b.organization_id = $1 and b.env = $2
    and ($3::text is null or b.status = $3) and ($4::text is null or b.campaign_id = $4)
    and b.id >= $5 and b.id < $6
order by b.id desc
limit $7 offset $8;

-- name: count
select count(*)
from (
    select 1
    from batches b
    where
        b.organization_id = $1 and b.env = $2
        and ($3::text is null or b.status = $3) and ($4::text is null or b.campaign_id = $4)
        and b.id >= $5 and b.id < $6
    limit $7
) few;

-- name: open
-- Everything of which something may happen by itself.
select organization_id, env, id, channel, sender_id, status, held_ms, paused_at, early_ms, scheduled_at
from batches
where open
order by id;

-- name: next_in_turn
-- One batch that is being made of each organization: the next one after that which had its turn last ($3, of the organization
-- $2), and then from the oldest on. With $1 of those whose next recipients are in a block, else of those whose audience is to be
-- read first. Without $4.
with recursive organizations (id) as (
    (select organization_id::text from batches where status = 'building' order by organization_id limit 1)
    union all
    select (
        select b.organization_id::text from batches b
        where b.status = 'building' and b.organization_id > o.id
        order by b.organization_id limit 1
    )
    from organizations o
    where o.id is not null
)
select n.organization_id, n.env, n.id
from organizations o
left join unnest($2::text[], $3::text[]) as had (organization_id, id) on had.organization_id = o.id
cross join lateral (
    select f.organization_id, f.env, f.id
    from (values (coalesce(had.id, ''), null), ('', had.id)) as part (after_id, to_id)
    cross join lateral (
        select b.organization_id, b.env, b.id
        from batches b
        where
            b.status = 'building' and b.organization_id = o.id and b.id > part.after_id
            and (part.to_id is null or b.id <= part.to_id)
            and b.id <> all($4::text[])
            and $1 = exists (
                select from batch_blocks k where k.organization_id = b.organization_id and k.batch_id = b.id
                offset 0 -- looked up for each, and not read as a whole first
            )
        order by b.id
        limit 1
    ) f
    order by part.to_id nulls first
    limit 1
) n;

-- name: next_block
select
    b.*, k.number, k.recipients
from batches b
join batch_blocks k on k.organization_id = b.organization_id and k.batch_id = b.id
where b.organization_id = $1 and b.env = $2 and b.id = $3 and b.status = 'building'
order by k.number
limit 1;

-- name: held_at
-- How long each of these numbers was held until a moment.
select sender_id, held_ms_at($1, sender_id, $3) as held_ms from unnest($2::text[]) as g (sender_id);

-- name: drop_block
delete from batch_blocks where organization_id = $1 and batch_id = $2 and number = $3;

-- name: block_made
-- building → running ($4) with the last block, or failed ($5) when none had a message in it. $7: how many recipients were
-- left out for which reason. None: another moved the batch meanwhile, and the block is not made.
update batches b
set
    blocks_left = b.blocks_left - 1,
    status = case when b.blocks_left > 1 then b.status when t.accepted > 0 then $4::text else $5::text end,
    finished_at = case when b.blocks_left = 1 and t.accepted = 0 then $6::timestamptz end,
    open = b.blocks_left > 1 or t.accepted > 0,
    updated_at = $6,
    {left_out}
from totals t
where
    b.organization_id = $1 and b.env = $2 and b.id = $3 and b.status = 'building' and b.blocks_left > 0
    and t.organization_id = $1 and t.env = $2 and t.kind = 'batch' and t.key = $3
returning b.blocks_left;

-- name: left_out
-- $7: how many more of a batch `b` get no message, by reason.
skipped = b.skipped + (select coalesce(sum(value::integer), 0) from jsonb_each_text($7::jsonb)),
skipped_reasons = b.skipped_reasons || (
    select coalesce(jsonb_object_agg(key, coalesce((b.skipped_reasons ->> key)::integer, 0) + value::integer), '{}')
    from jsonb_each_text($7::jsonb)
)

-- name: pause
-- $5: the states that it may leave so; $6: why, unless a caller asked for it.
update batches
set status = 'paused', paused_at = $4, pause_reason = $6, updated_at = $4
where organization_id = $1 and env = $2 and id = $3 and status = any($5::text[])
returning id;

-- name: resume
update batches
set
    status = case when blocks_left > 0 then 'building' else 'running' end,
    held_ms = held_ms + greatest(1, extract(epoch from $4 - paused_at) * 1000)::bigint, -- that it was paused at all shows
    early_ms = early_ms + case
        when scheduled_at > paused_at then (extract(epoch from least($4, scheduled_at) - paused_at) * 1000)::bigint else 0
    end,
    paused_at = null, pause_reason = null, updated_at = $4
where organization_id = $1 and env = $2 and id = $3 and status = any($5::text[])
returning held_ms, early_ms, scheduled_at;

-- name: cancel
with canceled as (
    update batches
    -- It stands still from here on, or from when it was paused on: what is not archived yet does not outlive its time.
    set
        status = 'canceled', blocks_left = 0, paused_at = coalesce(paused_at, $4), pause_reason = null, finished_at = $4,
        updated_at = $4
    where organization_id = $1 and env = $2 and id = $3 and status = any($5::text[])
    returning organization_id, id
),
dropped as (
    delete from batch_blocks k using canceled c where k.organization_id = c.organization_id and k.batch_id = c.id
),
unread as (
    delete from batch_audiences a using canceled c where a.organization_id = c.organization_id and a.batch_id = c.id
)
select id from canceled;

-- name: close
-- Batches whose queue is empty: running → completed, and canceled ones rest. $4: the state that completes.
with closed as (
    update batches b
    set
        status = case when b.status = $4 then 'completed' else b.status end,
        finished_at = coalesce(b.finished_at, $5), updated_at = $5, open = false
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
    join totals t
        on t.organization_id = g.organization_id and t.env = g.env and t.kind = 'batch' and t.key = g.id
    where
        b.organization_id = g.organization_id and b.env = g.env and b.id = g.id and b.open
        and b.status in ($4, 'canceled') and t.queued = 0
    returning b.organization_id, b.env, b.id, b.status
),
unranged as (
    delete from batch_ranges r using closed c where r.organization_id = c.organization_id and r.batch_id = c.id
)
select organization_id, env, id, status from closed;

-- name: hold
-- One block of the ready rows of a batch that is (still) paused, after the row $5, out of the ready index: range by range along the
-- key, as its ranges do not overlap. The batch is locked meanwhile: it is resumed before, and then nothing is held, or after the
-- commit, and then its release sees every row that was held.
with paused as materialized (
    select id from batches where organization_id = $1 and env = $4 and id = $2 and status = 'paused' for share
)
update dispatch d
set not_before = 'infinity', reason = 'owner_paused'
where
    d.organization_id = $1
    and d.id = any(array(
        select q.id
        from batch_ranges r
        cross join lateral (
            select id from dispatch
            where
                organization_id = $1 and id between r.first_id and r.last_id and id > $5
                and owner || '' = $2 and not_before is null and claimed_epoch is null -- by no index of ready rows
            order by id
            limit $3
            for update skip locked
        ) q
        where r.organization_id = $1 and r.batch_id = $2 and r.last_id > $5 and exists (select from paused)
        order by r.first_id, q.id
        limit $3
    ))
returning d.id;

-- name: withdraw
-- One block of the queued rows of a canceled batch after the row $7, whatever they wait for: queued → archived, or what their channel
-- has in its place ($9). What waits for its
-- repeat may have left: the batch holds it until a report or its day decides.
with withdrawn as (
    delete from dispatch d
    where
        d.organization_id = $1
        and d.id = any(array(
            select q.id
            from batch_ranges r
            cross join lateral (
                select id from dispatch
                where
                    organization_id = $1 and id between r.first_id and r.last_id and id > $7
                    and owner = $2 and claimed_epoch is null and repeat_of is null
                order by id
                limit $3
                for update skip locked
            ) q
            where r.organization_id = $1 and r.batch_id = $2 and r.last_id > $7
            order by r.first_id, q.id
            limit $3
        ))
    returning d.organization_id, d.env, d.channel, d.id, d.coins, d.price_kind, d.units, d.batch_id, d.campaign_id
),
moved as (
    update messages m
    set
        status = $9::jsonb ->> m.channel,
        archived_at = case $9::jsonb ->> m.channel when 'archived' then $4::timestamptz end,
        failed_at = case $9::jsonb ->> m.channel when 'failed' then $4::timestamptz end,
        last_error = $5, failure_code = $8, outcome_certain = true, updated_at = $4
    from withdrawn w
    where
        m.organization_id = w.organization_id and m.env = w.env and m.channel = w.channel and m.id = w.id
        and m.status = any($6::text[])
)
select organization_id, env, channel, id, $9::jsonb ->> channel as status, coins, price_kind, units, batch_id, campaign_id
from withdrawn;
