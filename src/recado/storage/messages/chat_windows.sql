-- name: last_inbound
select w.organization_id, w.sender_id, w.recipient_hash, w.last_inbound_at
from unnest($1::text[], $2::text[], $3::bigint[]) as g (organization_id, sender_id, recipient_hash)
join chat_windows w
    on w.organization_id = g.organization_id and w.sender_id = g.sender_id and w.recipient_hash = g.recipient_hash;
