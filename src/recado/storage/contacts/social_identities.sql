-- name: people
-- The contacts of these users, by their phones.
select g.n, c.phone
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as g (organization_id, env, account_id, user_id, n)
cross join lateral (
    select contact_id from social_identities
    where organization_id = g.organization_id and env = g.env and social_account_id = g.account_id and user_id = g.user_id
    offset 0
) s
cross join lateral (
    select phone from contacts
    where organization_id = g.organization_id and env = g.env and id = s.contact_id
    offset 0
) c;

-- name: users_of
select user_id from social_identities
where organization_id = $1 and env = $2 and contact_id = $3 and social_account_id = $4
order by user_id;

-- name: accounts
-- Those of these accounts that exist.
select id from social_accounts
where organization_id = $1 and env = $2 and id = any($3::text[]) and deleted_at is null;

-- name: unlink
delete from social_identities
where organization_id = $1 and env = $2 and contact_id = $3
    and (social_account_id, user_id) in (select * from unnest($4::text[], $5::text[]));

-- name: forget
delete from social_identities where organization_id = $1 and env = $2 and contact_id = $3;

-- name: link
insert into social_identities (organization_id, env, social_account_id, user_id, contact_id)
select $1, $2, g.account_id, g.user_id, $3
from unnest($4::text[], $5::text[]) as g (account_id, user_id)
order by 3, 4
on conflict (organization_id, env, social_account_id, user_id) do nothing
returning social_account_id, user_id;

-- name: holder
select contact_id from social_identities
where organization_id = $1 and env = $2 and social_account_id = $3 and user_id = $4;

-- name: adopt
-- The next messages of a person, by id, who is a contact now. Through the index of those without one, whatever the statistics say.
with page as materialized (
    select id from messages
    where organization_id = $1 and env = $2 and channel = 'social' and sender_id = $3 and recipient = $4
        and contact_id is null and id > $6
    order by id
    limit $7
),
adopted as (
    update messages set contact_id = $5
    where
        organization_id = $1 and env = $2 and channel = 'social' and id = any(array(select id from page))
        and id >= (select min(id) from page) and id <= (select max(id) from page)
)
select max(id) from page;
