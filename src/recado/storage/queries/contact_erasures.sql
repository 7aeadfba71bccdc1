-- name: begin
insert into contact_erasures (organization_id, env, contact_id, due_at) values ($1, $2, $3, $4)
on conflict do nothing;

-- name: due
select organization_id, env, contact_id, after_id from contact_erasures where due_at <= $1 order by due_at limit $2;

-- name: block
-- The next messages of a contact that have their recipient, by id. `settled`: nothing reads it any more.
select channel, id, recipient, status not in ('queued', 'sending') as settled
from messages
where organization_id = $1 and env = $2 and contact_id = $3 and id > $4 and recipient_hash <> 0
order by id
limit $5;

-- name: erase
update messages m
set recipient = g.masked, recipient_hash = 0, payload = null, template_vars = null
from unnest($3::text[], $4::text[], $5::text[]) as g (channel, id, masked)
where
    m.organization_id = $1 and m.env = $2 and m.channel = g.channel and m.id = g.id
    and m.status not in ('queued', 'sending');

-- name: advance
update contact_erasures set after_id = $4 where organization_id = $1 and env = $2 and contact_id = $3;

-- name: left
-- Whether a message still has its recipient.
select exists (
    select from messages
    where organization_id = $1 and env = $2 and contact_id = $3 and recipient_hash <> 0
);

-- name: again
update contact_erasures set after_id = $5, due_at = $4 where organization_id = $1 and env = $2 and contact_id = $3;

-- name: end
delete from contact_erasures where organization_id = $1 and env = $2 and contact_id = $3;
