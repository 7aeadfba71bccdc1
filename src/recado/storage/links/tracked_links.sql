-- name: in_accept
-- Links of the messages that an accept stores, in its statement. Whose code another message has fails it (CodeTaken).
linked as (
    insert into tracked_links (code, organization_id, env, channel, message_id, url)
    select l.code, g.organization_id, g.env, g.channel, g.id, l.url
    from unnest({ids}::text[], {codes}::text[], {urls}::text[]) as l (message_id, code, url)
    join given g on g.id = l.message_id
    where (g.id in (select id from stored)) is true
    order by l.code
),

-- name: insert
-- Links of messages that were stored in the same transaction before ($1 to $3: whose they are). Of those whose code another has,
-- nothing is answered.
insert into tracked_links (code, organization_id, env, channel, message_id, url)
select l.code, $1, $2, $3, l.message_id, l.url
from unnest($4::text[], $5::text[], $6::text[]) as l (message_id, code, url)
order by l.code
on conflict (code) do nothing
returning code;

-- name: insert_drawn
-- Links that were drawn when their messages, stored long since, left. As above.
insert into tracked_links (code, organization_id, env, channel, message_id, url)
select code, organization_id, env, channel, message_id, url
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    as l (code, organization_id, env, channel, message_id, url)
order by code
on conflict (code) do nothing
returning code;

-- name: by_code
select t.code, t.organization_id, t.env, t.channel, t.message_id, t.url
from unnest($1::text[]) as g (code)
cross join lateral (select * from tracked_links where code = g.code offset 0) t
where t.message_id >= $2;

-- name: of_messages
select t.message_id, t.code, t.url
from unnest($1::text[]) as g (id)
cross join lateral (select message_id, code, url from tracked_links where message_id = g.id offset 0) t
order by t.message_id, t.code;

-- name: count
-- Clicks by code. Answers one row for each message: how it is, whether any of its links was clicked before, and whom it went to, by
-- contact or, without one, by phone, of an e-mail by address: the oldest with it.
-- Processes that count clicks in one message ($5: those that were clicked) meet at its links, also at different ones: who comes second
-- reads what the first has written. In the order of the codes, so that no two wait for each other.
with given as (
    select * from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::timestamptz[]) as g (code, n, first_at, last_at)
),
links as materialized (
    select k.message_id, k.first_clicked_at
    from (
        select t.code
        from unnest($5::text[]) as g (message_id)
        cross join lateral (select code from tracked_links where message_id = g.message_id offset 0) t
        order by t.code
        offset 0
    ) c
    cross join lateral (
        select message_id, first_clicked_at from tracked_links where code = c.code for no key update
    ) k
),
clicked as (
    update tracked_links t
    set
        clicks = t.clicks + g.n,
        first_clicked_at = coalesce(t.first_clicked_at, g.first_at),
        last_clicked_at = greatest(t.last_clicked_at, g.last_at)
    from given g
    where t.code = g.code and (select count(*) from links) is not null
    returning t.organization_id, t.env, t.channel, t.message_id
),
messages_clicked as materialized (
    select distinct organization_id, env, channel, message_id from clicked
)
select
    c.message_id, m.status, m.campaign_id, coalesce(m.contact_id, k.id, e.id) as person_id,
    (c.message_id in (select message_id from links where first_clicked_at is not null)) is not true as fresh
from messages_clicked c
cross join lateral (
    select status, campaign_id, contact_id, recipient from messages /*month*/
    where organization_id = c.organization_id and env = c.env and channel = c.channel and id = c.message_id
    offset 0
) m
left join lateral ( -- along the index of phones, whatever the statistics say (inbound_contacts.sql)
    select id, phone from contacts
    where organization_id = c.organization_id and env = c.env and phone >= m.recipient
    order by phone
    limit 1
) k on m.contact_id is null and k.phone = m.recipient
cross join lateral ( -- along the index of addresses, as recipients.sql
    select min(a.id) as id
    from (
        select id from contacts
        where
            organization_id = c.organization_id and env = c.env and email_key between lower(m.recipient) and lower(m.recipient)
            and c.channel = 'email' and m.contact_id is null
        order by email_key
        limit 1000
    ) a
) e;

-- name: lock_contacts
-- In the order of their ids, each found through the key (inbound_contacts.sql); in a statement of its own, as campaigns.sql says.
select c.id
from (
    select * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id) order by organization_id, env, id offset 0
) g
cross join lateral (
    select id from contacts
    where organization_id = g.organization_id and env = g.env and id >= g.id
    order by id
    limit 1
    for no key update
) c
where c.id = g.id;

-- name: touch
-- Contacts that are locked by this transaction; by place, as of many indexes the planner may take another than the key.
with given as (
    select organization_id, env, id, max(at) as at
    from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) as g (organization_id, env, id, at)
    group by 1, 2, 3
)
update contacts c
set last_interaction_at = q.at
from (
    select r.place, g.at
    from given g
    cross join lateral (
        select ctid as place, id, last_interaction_at from contacts
        where organization_id = g.organization_id and env = g.env and id >= g.id
        order by id
        limit 1
    ) r
    where r.id = g.id and (r.last_interaction_at is null or r.last_interaction_at < g.at)
) q
where c.ctid = q.place;

-- name: erase
delete from tracked_links where message_id = any($1::text[]);

-- name: purge
delete from tracked_links
where code = any(array(select code from tracked_links where message_id < $1 order by message_id limit $2));
