-- name: page
select
    e.organization_id, e.env, e.event_id, e.id, e.name, e.contact_id, e.contact_external_id, e.occurred_at, e.value, e.currency,
    e.properties, e.message_id, e.message_channel, e.message_sent_at, e.campaign_id, e.journey_id, e.journey_step_id,
    e.journey_run_id
from customer_events e
where
    e.organization_id = :organization_id and e.env = :env
    and e.occurred_at >= :start and e.occurred_at < :end
    {conditions}
order by e.occurred_at desc, e.id desc
limit :limit

-- name: if_name
and e.name = :name

-- name: if_contact_id
and e.contact_id = :contact_id

-- name: if_after
and (e.occurred_at, e.id) < (:after_at, :after_id)
