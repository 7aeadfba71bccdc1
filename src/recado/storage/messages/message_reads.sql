-- name: by_id
select
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, class as klass, force, template_id,
    payload, template_vars, metadata, campaign_id, batch_id, contact_id, attempts, last_error, original_error,
    reprocessed, replaced_by, provider_message_id, sent_by_account_id, sent_by_name, scheduled_at, sent_at,
    delivered_at, read_at, failed_at, archived_at, updated_at, price_coins,
    outcome_certain, units, details, failure_code, gateway, receipt, link_origin, opened_at, clicked_at, waits, media_storage
from messages /*month*/
where organization_id = $1 and env = $2 and channel = any($3::text[]) and id = $4;

-- name: page
-- `found` is one of the three sources below: only ids are sorted and skipped, whole rows are read for one page.
with found as (
    {found}
    limit :limit offset :skip
)
select
    m.organization_id, m.env, m.channel, m.id, m.direction, m.status, m.type, m.sender_id, m.recipient, m.class as klass, m.force,
    m.template_id, m.payload, m.template_vars, m.metadata, m.campaign_id, m.batch_id, m.contact_id, m.attempts,
    m.last_error, m.original_error, m.reprocessed, m.replaced_by, m.provider_message_id, m.sent_by_account_id,
    m.sent_by_name, m.scheduled_at, m.sent_at, m.delivered_at, m.read_at, m.failed_at, m.archived_at, m.updated_at,
    m.price_coins, m.outcome_certain, m.units, m.details, m.failure_code, m.gateway, m.receipt, m.link_origin,
    m.opened_at, m.clicked_at, m.waits, m.media_storage
from found f
cross join lateral (
    select * from messages k
    where k.organization_id = :organization_id and k.env = :env and k.channel = f.channel and k.id = f.id
    limit 1
) m
order by m.id desc

-- name: count
select count(*)
from (
    {found}
    limit 10001
) matches;

-- name: walk
-- Newest first along the key, once for each channel. `reach`: how far the page goes at most.
select w.channel, w.id
from unnest(:channels::text[]) as c (channel)
cross join lateral (
    select m.channel, m.id
    from messages m
    where
        m.organization_id = :organization_id and m.env = :env and m.channel = c.channel
        and m.id >= :first_id and m.id < :before_id
        {conditions}
    order by m.id desc
    limit :reach
) w
order by w.id desc

-- name: narrow
-- By an index of a filter. The channel is compared so that the key cannot serve: walking a long history for one campaign
-- looks cheap to the planner and is not.
select m.channel, m.id
from messages m
where
    m.organization_id = :organization_id and m.env = :env
    and m.id >= :first_id and m.id < :before_id
    and m.channel || '' = any(:channels::text[])
    {conditions}
order by m.id desc

-- name: waiting
-- What is queued or sending has a row in `dispatch`; claimed, or waiting for its repeat, means sending.
select d.channel, d.id
from dispatch d
where
    d.organization_id = :organization_id and d.env = :env
    and d.id >= :first_id and d.id < :before_id
    and d.channel = any(:channels::text[])
    {conditions}
order by d.id desc

-- name: if_status
and m.status = any(:states::text[])

-- name: if_sent
-- Also what left by one way, and is queued to leave by another.
and (m.status = any(:states::text[]) or m.status = 'queued' and m.sent_at is not null)

-- name: if_unsent
and m.sent_at is null

-- name: if_waiting_unsent
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.sent_at is null
)

-- name: if_state_of_channel
-- Where channels differ in how one of these states shows.
and m.channel || ' ' || m.status = any(:states_of_channels::text[])

-- name: if_failed
and m.failed_at is not null

-- name: if_archived
and m.archived_at is not null

-- name: if_number
and m.sender_id = :sender_id

-- name: if_contact
and m.contact_id = :contact_id

-- name: if_campaign
and m.campaign_id = :campaign_id

-- name: if_batch
and m.batch_id = :batch_id

-- name: if_account
and m.sent_by_account_id = :sent_by_account_id

-- name: if_direction
and m.direction = :direction

-- name: if_recipient
and m.recipient_hash = :recipient_hash and m.recipient = :recipient

-- name: if_waiting_recipient
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.recipient_hash = :recipient_hash and m.recipient = :recipient
)

-- name: if_email
-- By the hash alone: the row has the address as it was given.
and m.recipient_hash = :recipient_hash

-- name: if_waiting_email
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.recipient_hash = :recipient_hash
)

-- name: if_region
and m.recipient like '+55%' = :brazilian

-- name: if_waiting_region
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.recipient like '+55%' = :brazilian
)

-- name: if_carrier
and m.details ->> 'deliveredVia' = :carrier

-- name: if_waiting_carrier
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.details ->> 'deliveredVia' = :carrier
)

-- name: if_waiting
-- The channels of which what is queued shows so, and what is claimed.
and d.channel = any(
    case when d.claimed_epoch is null and d.repeat_of is null then :queued_of::text[] else :sending_of::text[] end
)

-- name: if_waiting_number
and d.sender_id = :sender_id

-- name: if_waiting_account
and exists (
    select from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.sent_by_account_id = :sent_by_account_id
)

-- name: if_waiting_direction
and :direction = 'outbound'
