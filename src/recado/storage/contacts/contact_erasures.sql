-- name: begin
insert into contact_erasures (organization_id, env, contact_id, due_at, refused) values ($1, $2, $3, $4, $5)
on conflict do nothing;

-- name: due
select organization_id, env, contact_id, after_id from contact_erasures where due_at <= $1 order by due_at limit $2;

-- name: block
-- The next messages of a contact that have their recipient, by id; locked in that order. `settled`: nothing reads it any more.
select channel, id, recipient, sent_at, status not in ('queued', 'sending') as settled
from messages
where organization_id = $1 and env = $2 and contact_id = $3 and id > $4 and recipient_hash is not null
order by id
limit $5
for no key update;

-- name: erase
-- $4: ids, in order: between the first and the last of them are the months to look in. $5: what is kept of each recipient, by
-- these ids. Nothing is joined: without statistics a join would begin with all messages of the organization.
update messages
set recipient = $5::jsonb ->> id, recipient_hash = null, payload = null, template_vars = null, receipt = null, media_storage = null,
    details = details - 'subject'
where
    organization_id = $1 and env = $2 and channel = any($3::text[]) and id = any($4::text[])
    and id >= ($4::text[])[1] and id <= ($4::text[])[cardinality($4::text[])]
    and status not in ('queued', 'sending');

-- name: forget
-- Organization $1 did not reach these in environment $2, as far as it did so until then: what it sent since stays. Each is found
-- through the key, whatever the statistics say.
delete from reached_recipients r
using (
    select f.place
    from unnest($3::text[], $4::text[], $5::timestamptz[]) as g (channel, recipient, until)
    cross join lateral (
        select ctid as place, reached_at
        from reached_recipients
        where
            env = $2 and channel = g.channel and address_hash = sha256(convert_to(g.channel || ':' || g.recipient, 'UTF8'))
            and organization_id = $1
        offset 0
    ) f
    where f.reached_at <= g.until
) q
where r.ctid = q.place;

-- name: events
-- The next events of a contact, by id.
select id, type, data from events
where organization_id = $1 and env = $2 and type like 'contact.%' and data ->> 'id' = $3 and id > $4
order by id
limit $5;

-- name: erase_events
-- $3: what is kept, by id; as text, so that its members stay in their order.
update events set data = $3::text::json -> id where organization_id = $1 and id = any($2::text[]);

-- name: advance
update contact_erasures set after_id = $4 where organization_id = $1 and env = $2 and contact_id = $3;

-- name: left
-- Whether a message still has its recipient.
select exists (
    select from messages
    where organization_id = $1 and env = $2 and contact_id = $3 and recipient_hash is not null
);

-- name: again
update contact_erasures set after_id = $5, due_at = $4 where organization_id = $1 and env = $2 and contact_id = $3;

-- name: end
delete from contact_erasures where organization_id = $1 and env = $2 and contact_id = $3;
