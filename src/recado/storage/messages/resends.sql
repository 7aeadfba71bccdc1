-- name: by_ids
-- The messages with these ids, in the order in which they were asked for.
select
    m.id, m.direction, m.status, m.type, m.sender_id, m.recipient, m.recipient_hash, m.template_id, m.payload, m.template_vars,
    m.metadata, m.campaign_id, m.contact_id, m.outcome_certain, m.replaced_by, m.units, m.details::text
from unnest($3::text[]) with ordinality as g (id, place)
cross join lateral (
    select * from messages k
    where k.organization_id = $1 and k.env = $2 and k.channel = $4 and k.id = g.id
    limit 1
) m
order by g.place;

-- name: failed
-- Failed messages of a batch or a campaign that nothing replaced yet, the oldest first.
select
    m.id, m.direction, m.status, m.type, m.sender_id, m.recipient, m.recipient_hash, m.template_id, m.payload, m.template_vars,
    m.metadata, m.campaign_id, m.contact_id, m.outcome_certain, m.replaced_by, m.units, m.details::text
from messages m
where
    {which} and m.replaced_by is null
order by m.id
limit :limit;

-- name: measure
-- How many of them there are, up to the limit, and what they hold in bytes.
select count(*) as messages, coalesce(sum(held), 0)::bigint as bytes
from (
    select {held} as held
    from messages m
    where
        {which} and m.replaced_by is null
    order by m.id
    limit :limit
) found;

-- name: size
-- The bytes that the messages with these ids hold.
select coalesce(sum(held), 0)::bigint
from unnest($3::text[]) as g (id)
cross join lateral (
    select {held} as held from messages m
    where m.organization_id = $1 and m.env = $2 and m.channel = $4 and m.id = g.id
    limit 1
) m;

-- name: held
-- What one holds in bytes.
coalesce(octet_length(m.payload::text), 0) + coalesce(octet_length(m.template_vars::text), 0)
+ coalesce(octet_length(m.metadata::text), 0) + coalesce(octet_length(m.details::text), 0)

-- name: replaced
-- How many of them were replaced already.
select count(*) from messages m where {which} and m.replaced_by is not null;

-- name: which
-- The channel is compared so that the key cannot serve: see message_reads.sql.
m.organization_id = :organization_id and m.env = :env and m.id >= :first_id and m.id < :before_id
and m.channel || '' = :channel and m.direction = 'outbound' and m.status = 'failed' and m.failed_at is not null
{conditions}

-- name: if_batch
and m.batch_id = :batch_id

-- name: if_campaign
and m.campaign_id = :campaign_id

-- name: if_number
and m.sender_id = :sender_id

-- name: counterparts
-- The templates of number $4 with the name and the language of these.
select old.id, new.id as counterpart
from unnest($3::text[]) as g (id)
join templates old on old.organization_id = $1 and old.env = $2 and old.id = g.id
join templates new
    on
        new.organization_id = $1 and new.env = $2 and new.number_id = $4
        and new.name = old.name and new.language = old.language and new.deleted_at is null;
