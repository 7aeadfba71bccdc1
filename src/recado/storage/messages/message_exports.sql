-- name: page
-- Along the key. Each contact is found through its own: `limit 1` keeps the planner from joining all contacts of an organization.
-- In the order of `ExportedMessage`.
select
    m.id, m.direction, m.recipient, m.contact_id is null or c.id is not null as known, m.status, m.campaign_id, m.contact_id,
    c.external_id as contact_external_id, m.metadata, m.sent_at, m.delivered_at, m.read_at, m.failed_at, m.failure_code,
    m.last_error, m.units, m.details
from messages m
left join lateral (
    select k.id, k.external_id from contacts k
    where k.organization_id = m.organization_id and k.env = m.env and k.id = m.contact_id
    limit 1
) c on true
where
    m.organization_id = :organization_id and m.env = :env and m.channel = :channel
    and m.id >= :first_id and m.id < :before_id
order by m.id desc
limit :limit
