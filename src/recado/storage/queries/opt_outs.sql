-- name: entries
-- What the registry holds of these names; `n` tells which of those asked for.
select g.n, o.at, o.source
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::bytea[]) as g (n, organization_id, env, kind, hash)
cross join lateral (
    select at, source from opt_outs
    where organization_id = g.organization_id and env = g.env and kind = g.kind and hash = g.hash
    offset 0
) o;

-- name: enter
insert into opt_outs (organization_id, env, kind, hash, at, source)
select g.*
from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[], $6::text[]) as g
on conflict (organization_id, env, kind, hash) do update
set at = excluded.at, source = coalesce(excluded.source, opt_outs.source)
where opt_outs.at < excluded.at;

-- name: leave
delete from opt_outs where organization_id = $1 and env = $2 and kind = $3 and hash = $4;

-- name: leave_unless_shared
delete from opt_outs
where
    organization_id = $1 and env = $2 and kind = $3 and hash = $4
    and not exists (
        select from contacts
        where organization_id = $1 and env = $2 and email_key = $5 and id <> $6 and opt_in_status = 'denied'
    );
