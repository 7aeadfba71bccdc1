-- name: accept
-- One batch of new outbound messages. A row whose idempotency key is taken is left out; a row that an earlier run of the
-- same batch committed is left alone, and queued no second time. With $24, the prices of the rows that this run stored are
-- held (holds.sql). Keys, rows and wallets are touched in this order, each in an order of its own, as everywhere: no two
-- transactions wait for each other.
-- $28 says of whose recipients consent is asked (messages.py: ConsentCheck), by contact and registry as in a claim
-- (dispatch.sql), and by the other spellings of a phone that has some ($29); both are null when nobody's is needed. The comments
-- that begin with `+` are as there. What
-- consent forbids is left out whole: its key stays free, and nothing is held for it.
-- $32 is when those were claimed that are sent directly, for the owner of epoch $33: null of the others. What is not his to claim
-- is left out; `owner`: as in a claim. $34: too.
-- `+links`: of messages with links that are tracked (tracked_links.sql). `owner`, `source`, `journey`: of messages that belong to no batch and no
-- journey; others have columns for them (messages.py: with_owners).
-- Answers what this run left out, usually nothing; `opted_out` is null but for what consent forbids.
with owner as materialized (
    {owner}
),
given as (
    select
        organization_id, env, channel, id, sender_id, type, recipient, recipient_hash, class, flags & 1 = 1 as force,
        flags & 2 = 2 as needs_window, flags & 4 = 4 as obeys_quiet_hours,
        template_id, payload, template_vars, metadata, campaign_id, moment(scheduled_us) as scheduled_at,
        moment(coalesce(scheduled_us, accepted_us)) as due_at, ttl_ms, held_base_ms, moment(accepted_us) as accepted_at,
        decode(key_hash, 'hex') as key_hash, decode(fingerprint, 'hex') as fingerprint, coins, price_kind,
        sent_by_account_id, sent_by_name, contact_id, consent > 0 as needs_consent, consent > 1 as asks_consent,
        consent = 3 as granted_only, spellings, coalesce(units, 1) as units, details, moment(claimed_us) as claimed_at,
        claimed_us is not null and not exists (select from owner) as lost
        /*+column*/
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6), unpack($7), unpack($8)::bigint[],
        unpack($9)::smallint[], unpack($10)::smallint[], unpack($11), unpack($12), unpack($13), unpack($14), $15::text[],
        unpack($16)::bigint[], unpack($17)::bigint[], unpack($18)::bigint[], unpack($19)::bigint[], unpack($20),
        unpack($21), unpack($22)::bigint[], unpack($23), $25::text[], $26::text[], $27::text[],
        unpack($28)::smallint[], unpack($29), unpack($30)::integer[], unpack($31), unpack($32)::bigint[]
        /*+values*/
    ) as g (
        organization_id, env, channel, id, sender_id, type, recipient, recipient_hash, class, flags, template_id, payload,
        template_vars, metadata, campaign_id, scheduled_us, ttl_ms, held_base_ms, accepted_us, key_hash, fingerprint,
        coins, price_kind, sent_by_account_id, sent_by_name, contact_id, consent, spellings, units, details,
        claimed_us /*+column*/
    )
),
forbidden as materialized (
    select id, opted_out
    from (
        select
            g.id, g.granted_only and c.opt_in_status is distinct from 'granted' as ungranted,
            c.opt_in_status is not distinct from 'denied'
            or exists (
                select from opt_outs o
                where
                    o.organization_id = g.organization_id and o.env = g.env and o.kind = 'phone'
                    and o.hash = sha256(convert_to(g.organization_id || ':' || g.recipient, 'UTF8'))
                offset 0
            )
            or (opted_out_as(g.organization_id, g.env, g.spellings)) is true as opted_out
        from given g
        left join lateral (
            select phone, opt_in_status from contacts
            where organization_id = g.organization_id and env = g.env and phone >= g.recipient
            order by phone
            limit 1
        ) c on c.phone = g.recipient
        where g.asks_consent /*+phones*/
        offset 0
    ) asked
    where opted_out or ungranted
    /*+forbidden*/
),
bound as (
    insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, message_id)
    select organization_id, env, key_hash, fingerprint, accepted_at, id
    from given
    where key_hash is not null and not lost and (id in (select id from forbidden)) is not true -- hashed: see dispatch.sql
    order by organization_id, env, key_hash
    on conflict do nothing
    returning message_id
),
stored as (
    insert into messages /*month*/ (
        organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
        template_id, payload, template_vars, metadata, campaign_id, scheduled_at, updated_at, price_coins, price_kind,
        sent_by_account_id, sent_by_name, contact_id, units, details, attempts, journey_id
    )
    select
        organization_id, env, channel, id, 'outbound',
        case when claimed_at is null then 'queued' else coalesce($34::jsonb ->> channel, 'sending') end, type, sender_id,
        recipient, recipient_hash, class, force, template_id, payload::json, template_vars::json, metadata::json,
        campaign_id, scheduled_at, accepted_at, coins, price_kind, sent_by_account_id, sent_by_name, contact_id, units, details::jsonb,
        case when claimed_at is null then 0 else 1 end, null::text /*journey*/
    from given
    where
        case
            when key_hash is null then not lost and (id in (select id from forbidden)) is not true
            else (id in (select message_id from bound)) is true
        end
    on conflict do nothing
    returning id
),
queued as (
    insert into dispatch (
        organization_id, id, env, channel, sender_id, class, owner, source_kind, due_at, not_before, reason, ttl_ms,
        expires_at, held_base_ms, force, template_id, campaign_id, coins, price_kind, units, consent_hash, needs_window,
        obeys_quiet_hours, claimed_epoch, claimed_at, attempts, direct
    )
    select
        g.organization_id, g.id, g.env, g.channel, g.sender_id,
        case when g.needs_window then least(g.class, 1) else g.class end, -- nothing that holds bulk holds a reply (C14.5)
        'single' /*owner*/, 'single' /*source*/, g.due_at,
        case when g.due_at > g.accepted_at then g.due_at end,
        case when g.due_at > g.accepted_at then 'scheduled' end,
        g.ttl_ms, g.due_at + g.ttl_ms * interval '1 millisecond', g.held_base_ms, g.force, g.template_id,
        g.campaign_id, coalesce(g.coins, 0), g.price_kind, g.units,
        case when g.needs_consent then g.recipient_hash end, -- C12.5.4
        g.needs_window, g.obeys_quiet_hours, case when g.claimed_at is not null then $33::bigint end, g.claimed_at,
        case when g.claimed_at is null then 0 else 1 end, g.claimed_at is not null
    from given g
    where (g.id in (select id from stored)) is true
    on conflict do nothing
    returning organization_id, env, coins
),
noted as ( -- as each claim is (dispatch.sql)
    insert into claims (epoch, at, organization_ids, ids)
    select $33::bigint, max(accepted_at), string_agg(organization_id, e'\x1f' order by id), string_agg(id, e'\x1f' order by id)
    from given
    where $32 is not null and claimed_at is not null and (id in (select id from stored)) is true
    having count(*) > 0
),
/*+links*/
{held}
select g.id, null::boolean as opted_out
from given g
where (g.id in (select id from stored)) is not true and (g.id in (select id from forbidden)) is not true
union all
select id, opted_out from forbidden
union all
select id, null from ({refused}) as never (id);

-- name: known
-- Which of these messages exist.
select m.id
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, channel, id)
cross join lateral (
    select id from messages
    where organization_id = g.organization_id and env = g.env and channel = g.channel and id = g.id
    offset 0
) m;

-- name: bindings
-- What idempotency keys are bound to.
select i.organization_id, i.env, i.key_hash, i.fingerprint, i.message_id, i.created_at
from unnest($1::text[], $2::text[], $3::bytea[]) as g (organization_id, env, key_hash)
join idempotency i
    on i.organization_id = g.organization_id and i.env = g.env and i.key_hash = g.key_hash;

-- name: unbind
-- Frees a key that still points to this message: it was refused for good, or its day has passed (C6.2). Null: to a kept
-- answer, as of a dry run.
delete from idempotency
where organization_id = $1 and env = $2 and key_hash = $3 and message_id is not distinct from $4;


-- name: force
-- A queued message goes ahead of its time, of quiet hours and of the token bucket. The row in dispatch is the lock: a claim
-- in progress wins or loses there. $6: what it passes; what other gates hold stays held.
with forced as (
    update dispatch
    set
        force = true,
        not_before = case when reason = any($6::text[]) then null else not_before end,
        reason = case when reason = any($6::text[]) then null else reason end,
        expires_at = case when due_at > $4 then $4 + ttl_ms * interval '1 millisecond' else expires_at end,
        held_base_ms = case
            when due_at > $4 then greatest(held_base_ms, held_ms_at(organization_id, sender_id, $4)) else held_base_ms
        end,
        due_at = least(due_at, $4)
    where organization_id = $1 and env = $2 and id = $3 and claimed_epoch is null and repeat_of is null
    returning organization_id, env, channel, id
)
update messages m
set
    force = true,
    scheduled_at = case when m.scheduled_at > $4 then $4 else m.scheduled_at end,
    updated_at = $4
from forced f
where
    m.organization_id = f.organization_id and m.env = f.env and m.channel = f.channel and m.id = f.id
    and m.status = $5
returning m.channel;

-- name: archive_queued
-- Withdrawn before it left ($6: the states that it may leave so): queued → archived, or what its channel has in its place ($8).
with withdrawn as (
    delete from dispatch
    where organization_id = $1 and env = $2 and id = $3 and claimed_epoch is null and repeat_of is null
    returning organization_id, env, channel, id, coins, price_kind, units, batch_id, campaign_id
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
returning m.organization_id, m.id, m.channel, m.status, w.coins, w.price_kind, w.units, w.batch_id, w.campaign_id;

-- name: open_inbound
update messages
set status = 'read', read_at = $5, updated_at = $5
where
    organization_id = $1 and env = $2 and channel = $3 and id = $4 and direction = 'inbound' and status = any($6::text[])
returning read_at;

-- name: archive_failed
update messages
set status = 'archived', archived_at = $5, updated_at = $5
where organization_id = $1 and env = $2 and channel = any($3::text[]) and id = $4 and status = any($6::text[])
returning channel, batch_id, campaign_id;
