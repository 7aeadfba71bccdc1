-- name: matches
-- Two ways, so that one address is found by its index in any plan.
select * from email_suppressions where organization_id = $1 and env = $2 and $3::bytea is null
union all
select * from email_suppressions where organization_id = $1 and env = $2 and hash = $3

-- name: add
-- Of an address that is there already the entry stays as it is; to write it makes it be answered.
insert into email_suppressions (organization_id, env, id, email, reason, hash, updated_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (organization_id, env, hash) do update set hash = excluded.hash
returning organization_id, env, id, email, reason, hash, updated_at

-- name: add_many
insert into email_suppressions (organization_id, env, id, email, reason, hash, updated_at)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::timestamptz[])
on conflict (organization_id, env, hash) do nothing

-- name: among
select hash from email_suppressions where organization_id = $1 and env = $2 and hash = any($3::bytea[])

-- name: suppressed
-- Which of these addresses, by their hashes ($3), get nothing; of any organization.
select g.n
from unnest($1::text[], $2::text[], $3::bytea[]) with ordinality as g (organization_id, env, hash, n)
where exists (
    select from email_suppressions
    where organization_id = g.organization_id and env = g.env and hash = g.hash
    offset 0
)

-- name: mask
update email_suppressions set email = $4
where
    organization_id = $1 and env = $2 and hash = $3
    and not exists (select from contacts where organization_id = $1 and env = $2 and email_key = $5)
