-- name: owe
insert into opt_out_replies (organization_id, env, contact_id, channel, sender_id, asked_at)
select g.*
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
    as g (organization_id, env, contact_id, channel, sender_id, asked_at)
on conflict (organization_id, env, contact_id) do update
set channel = excluded.channel, sender_id = excluded.sender_id, asked_at = excluded.asked_at;

-- name: owed
-- The next answers after a contact, and whom they go to: nobody, when the contact is gone.
select r.*, c.phone
from opt_out_replies r
left join contacts c on c.organization_id = r.organization_id and c.env = r.env and c.id = r.contact_id
where (r.organization_id, r.env, r.contact_id) > ($1, $2, $3)
order by r.organization_id, r.env, r.contact_id
limit $4;

-- name: settle
-- Unless the person asked again meanwhile.
delete from opt_out_replies r
using unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, env, contact_id, asked_at)
where
    r.organization_id = g.organization_id and r.env = g.env and r.contact_id = g.contact_id and r.asked_at = g.asked_at;
