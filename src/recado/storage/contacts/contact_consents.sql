-- name: append
insert into contact_consents (
    organization_id, env, contact_id, revision, from_status, to_status, at, date_given, source, ip, user_agent, reason,
    actor_type, actor_id, recorded_at
)
select g.*
from unnest(
    $1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::timestamptz[], $8::boolean[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::timestamptz[]
) as g
on conflict do nothing;

-- name: of_contact
select * from contact_consents
where organization_id = $1 and env = $2 and contact_id = $3 and revision < $4
order by revision desc
limit $5;

-- name: forget
delete from contact_consents where organization_id = $1 and env = $2 and contact_id = $3;

-- name: purge
delete from contact_consents where recorded_at < $1;
