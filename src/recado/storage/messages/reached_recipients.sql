-- name: dedicated
-- Whose sender these are. Each is one organization's: where two have the same, it is the older one's.
select distinct on (dedicated_sender) dedicated_sender, id
from organizations
where dedicated_sender = any($1::text[])
order by dedicated_sender, id;

-- name: senders_to
-- Who has sent to these addresses ($3) since $4, the last one first. An organization is found once for each.
select address_hash, organization_id, sender_id
from reached_recipients
where env = $1 and channel = $2 and address_hash = any($3::bytea[]) and reached_at >= $4
order by address_hash, reached_at desc, organization_id;
