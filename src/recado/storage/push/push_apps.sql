-- name: in_use
select exists (
    select from push_messages m
    join push_blocks b on b.organization_id = m.organization_id and b.env = m.env and b.message_id = m.id
    where m.organization_id = $1 and m.env = $2 and m.open and b.app_id = $3
)

-- name: delete_devices
-- Their contacts have fewer (`count` in push_devices.sql).
with gone as (
    delete from push_devices where organization_id = $1 and env = $2 and app_id = $3
    returning contact_id, status
),
locked as materialized (
    select c.id, f.devices
    from (
        select contact_id as id, count(*) as devices from gone
        where status = 'registered' and contact_id is not null
        group by contact_id
        order by contact_id
    ) f
    cross join lateral (
        select id from contacts where organization_id = $1 and env = $2 and id = f.id for no key update
    ) c
)
update contacts c set push_devices = c.push_devices - l.devices
from locked l
where c.organization_id = $1 and c.env = $2 and c.id = l.id
