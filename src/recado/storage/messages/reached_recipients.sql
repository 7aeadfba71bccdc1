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

-- name: reached
-- Part of the statements by which messages leave: whose it is what comes back from a sender that organizations share (C28.1). It comes
-- after the minutes, so that each of these statements waits for one thing after the other in one order. Of who was erased there is
-- no address any more.
reached as (
    insert into reached_recipients as r (env, channel, address_hash, organization_id, sender_id, reached_at)
    select distinct on (1, 2, 3, 4)
        l.env, {carrier}, sha256(convert_to({carrier} || ':' || l.recipient, 'UTF8')), l.organization_id, l.sender_id, l.sent_at
    from ({leaving}) l
    where
        l.env = 'live' and l.channel = any({shared}) and l.recipient is not null and (select count(*) from counted) is not null
    order by 1, 2, 3, 4, l.sent_at desc
    on conflict (env, channel, address_hash, organization_id) do update
    set sender_id = excluded.sender_id, reached_at = excluded.reached_at
    where r.reached_at < excluded.reached_at
    returning 1
)

-- name: answered
-- Those that leave by `sent` (dispatch.sql).
select g.env, g.channel, g.organization_id, g.sender_id, g.sent_at, m.recipient
from given g
join moved m on m.id = g.id

-- name: reported
-- Those that leave by `apply` (receipts.sql).
select * from moved where left_now
