-- name: found
-- Those of these e-mails ($3) that are there, and whether nobody opened them before. One by one through the key.
select g.id, m.status, m.campaign_id, m.opened_at is null as fresh
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
cross join lateral (
    select status, campaign_id, opened_at from messages /*month*/
    where organization_id = g.organization_id and env = g.env and channel = 'email' and id = g.id
    offset 0
) m;

-- name: lock
-- In the order of their ids, as everybody locks messages who changes several.
select m.id
from (
    select * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id) order by id offset 0
) g
cross join lateral (
    select id from messages /*month*/
    where organization_id = g.organization_id and env = g.env and channel = 'email' and id = g.id
    limit 1
    for no key update
) m;

-- name: open
-- E-mails that this transaction has locked were opened first at these moments ($4). Answers those of which that is so.
update messages /*month*/ m
set opened_at = g.at, updated_at = greatest(m.updated_at, g.at)
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, env, id, at)
where
    m.organization_id = g.organization_id and m.env = g.env and m.channel = 'email' and m.id = g.id and m.opened_at is null
returning m.id;

-- name: click
-- Likewise of the first click in each.
update messages /*month*/ m
set clicked_at = g.at, updated_at = greatest(m.updated_at, g.at)
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, env, id, at)
where
    m.organization_id = g.organization_id and m.env = g.env and m.channel = 'email' and m.id = g.id and m.clicked_at is null;

-- name: recipient
select recipient from messages where organization_id = $1 and env = $2 and channel = 'email' and id = $3;
