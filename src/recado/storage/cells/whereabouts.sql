-- Of what a request shows: which of it a cell has, whose it is, and whether that organization stands still for a move. By index.

-- name: key
select g.key, t.organization_id, o.moving
from unnest($1::bytea[]) as g (key)
cross join lateral (select organization_id from api_key_tokens where token_hash = g.key offset 0) t
join organizations o on o.id = t.organization_id;

-- name: session
select g.key, t.organization_id, o.moving
from unnest($1::bytea[]) as g (key)
cross join lateral (select organization_id from sessions where live_hash = g.key or test_hash = g.key offset 0) t
join organizations o on o.id = t.organization_id;

-- name: invite
select g.key, a.organization_id, o.moving
from unnest($1::bytea[]) as g (key)
cross join lateral (select account_id from account_invites where token_hash = g.key offset 0) t
join accounts a on a.id = t.account_id
join organizations o on o.id = a.organization_id;

-- name: email
select g.key, t.organization_id, o.moving
from unnest($1::text[]) as g (key)
cross join lateral (select organization_id from accounts where email_key = g.key offset 0) t
join organizations o on o.id = t.organization_id;

-- name: link
select g.key, t.organization_id, o.moving
from unnest($1::text[]) as g (key)
cross join lateral (select organization_id from tracked_links where code = g.key offset 0) t
join organizations o on o.id = t.organization_id;

-- name: chat
select g.key, t.organization_id, o.moving
from unnest($1::text[]) as g (key)
cross join lateral (select organization_id from origin_links where slug = g.key offset 0) t
join organizations o on o.id = t.organization_id;

-- name: organization
select g.key, t.id as organization_id, t.moving
from unnest($1::text[]) as g (key)
cross join lateral (select id, moving from organizations where id = g.key offset 0) t;
