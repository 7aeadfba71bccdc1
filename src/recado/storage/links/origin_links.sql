-- name: by_slug
select l.*
from unnest($1::text[]) as g (slug)
cross join lateral (select * from origin_links where slug = g.slug offset 0) l;

-- name: count_clicks
-- In the order of their ids, so that no two processes wait for each other.
with locked as materialized (
    select l.organization_id, l.env, l.id, g.clicks
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as g (organization_id, env, id, clicks)
    join origin_links l on l.organization_id = g.organization_id and l.env = g.env and l.id = g.id
    order by l.id
    for no key update of l
)
update origin_links l
set clicks = l.clicks + g.clicks
from locked g
where l.organization_id = g.organization_id and l.env = g.env and l.id = g.id;

-- name: store_codes
insert into origin_codes (organization_id, sender_id, code, origin, created_at)
select organization_id, sender_id, code, origin::json, created_at
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
    as g (organization_id, sender_id, code, origin, created_at)
order by 1, 2, 3
on conflict do nothing
returning organization_id, sender_id, code;

-- name: use_up
-- Two messages that bring one code meet here: the second finds nothing.
with brought as materialized (
    select c.organization_id, c.sender_id, c.code
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, sender_id, code)
    join origin_codes c
        on c.organization_id = g.organization_id and c.sender_id = g.sender_id and c.code = g.code
    where c.created_at > $4
    order by 1, 2, 3
    for update of c
)
delete from origin_codes c
using brought b
where c.organization_id = b.organization_id and c.sender_id = b.sender_id and c.code = b.code
returning c.organization_id, c.sender_id, c.code, c.origin;

-- name: purge_codes
delete from origin_codes
where ctid = any(array(select ctid from origin_codes where created_at <= $1 order by created_at limit $2));
