-- name: in_use
select exists (
    select from push_messages m
    join push_blocks b on b.organization_id = m.organization_id and b.env = m.env and b.message_id = m.id
    where m.organization_id = $1 and m.env = $2 and m.open and b.app_id = $3
)

-- name: delete_devices
delete from push_devices where organization_id = $1 and env = $2 and app_id = $3
