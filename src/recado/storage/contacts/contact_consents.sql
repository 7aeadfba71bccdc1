-- name: append
insert into contact_consents (
    organization_id, env, contact_id, revision, from_status, to_status, at, date_given, source, ip, user_agent, reason,
    actor_type, actor_id, recorded_at
)
select g.*
from unnest(
    :organization_id::text[], :env::text[], :contact_id::text[], :revision::integer[], :from_status::text[],
    :to_status::text[], :at::timestamptz[], :date_given::boolean[], :source::text[], :ip::text[], :user_agent::text[],
    :reason::text[], :actor_type::text[], :actor_id::text[], :recorded_at::timestamptz[]
) as g
on conflict do nothing;

-- name: of_contact
select * from contact_consents
where organization_id = $1 and env = $2 and contact_id = $3 and revision < $4 and recorded_at >= $5
order by revision desc
limit $6;

-- name: forget
delete from contact_consents where organization_id = $1 and env = $2 and contact_id = $3;

-- name: purge
delete from contact_consents where recorded_at < $1;
