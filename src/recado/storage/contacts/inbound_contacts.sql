-- name: locked
-- The contacts of these phones, locked in the order of their ids as anyone who changes several of them does. One look into the
-- index of phones for each, and then into the key, whatever the statistics say (see contacts.sql).
with found as materialized (
    select c.organization_id, c.env, c.id
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, phone)
    cross join lateral (
        select organization_id, env, id, phone from contacts
        where organization_id = g.organization_id and env = g.env and phone >= g.phone
        order by phone
        limit 1
    ) c
    where c.phone = g.phone
)
select c.*
from (select * from found order by id) f
cross join lateral (
    select * from contacts
    where organization_id = f.organization_id and env = f.env and id >= f.id
    order by id
    limit 1
    for update
) c
where c.id = f.id;

-- name: touch
-- They wrote: their last interaction moves on, never back, and they can be reached on the channels $5 (C12.2, C13.2). Neither
-- raises the revision.
update contacts c
set
    last_interaction_at = greatest(c.last_interaction_at, g.at),
    unreachable = array(select u from unnest(c.unreachable) as u where u <> all($5::text[]))
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, env, id, at)
where
    c.organization_id = g.organization_id and c.env = g.env and c.id = g.id
    and (c.last_interaction_at is null or c.last_interaction_at < g.at or c.unreachable && $5::text[]);

-- name: rename
-- What they call themselves on the chat app, and the words by which a search finds it.
update contacts c
set
    chatapp_profile_name = g.name, search = array_to_tsvector(string_to_array(g.words, ' ')), revision = c.revision + 1,
    updated_at = $6
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as g (organization_id, env, id, name, words)
where c.organization_id = g.organization_id and c.env = g.env and c.id = g.id;

-- name: of_users
-- The contacts of these users of the chat app, by their phones; of several the one that was heard of last, among $4 of them at most.
-- Along the one index that has the order that is asked for, whatever the statistics say.
select g.n, c.phone
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as g (organization_id, env, user_id, n)
cross join lateral (
    select k.phone
    from (
        select id, phone, last_interaction_at from contacts
        where organization_id = g.organization_id and env = g.env and chatapp_user_id between g.user_id and g.user_id
        order by chatapp_user_id
        limit $4
    ) k
    order by k.last_interaction_at desc nulls last, k.id desc
    limit 1
) c;

-- name: identify
-- As whom the chat app's provider knows them.
update contacts c
set chatapp_user_id = g.user_id, revision = c.revision + 1, updated_at = $5
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, id, user_id)
where c.organization_id = g.organization_id and c.env = g.env and c.id = g.id;
