-- name: insert
insert into push_messages (
    organization_id, env, id, status, open, origin, rate_kind, unit_coins, billed, reach, title, body, platforms, deep_link,
    image_url, actions, data, segment, campaign_id, metadata, dispatch_key, scheduled_at, quiet_deferred_to, due_at,
    started_at, finished_at, created_by_id, updated_at
) values (
    :organization_id, :env, :id, :status, :open, :origin, :rate_kind, :unit_coins, :billed, :reach, :title, :body, :platforms,
    :deep_link, :image_url, :actions, :data, :segment, :campaign_id, :metadata, :dispatch_key, :scheduled_at,
    :quiet_deferred_to, :due_at, :started_at, :finished_at, :created_by_id, :updated_at
);

-- name: bind_key
insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, message_id)
values ($1, $2, $3, $4, $5, $6)
on conflict (organization_id, env, key_hash) do nothing
returning message_id;

-- name: by_id
select * from push_messages where organization_id = $1 and env = $2 and id = $3;

-- name: by_id_locked
select * from push_messages where organization_id = $1 and env = $2 and id = $3 for no key update;

-- name: counts
select c.*
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, message_id)
join push_counts c on c.organization_id = g.organization_id and c.env = g.env and c.message_id = g.message_id
order by c.message_id, c.platform;

-- name: page
select * from push_messages
where
    organization_id = :organization_id and env = :env and id >= :first_id and id < :before_id
    and (:statuses::text[] is null or status = any(:statuses))
    and (:origins::text[] is null or origin = any(:origins))
order by id desc
limit :limit;

-- name: dispatches
-- From the blocks that fixed the audience, with what became of each device. Of a message that is over, nobody sends to those of
-- which nothing is known.
select
    b.number * 500 + u.n - 1 as place, u.device_id, b.platform,
    coalesce(d.status, case when m.open then 'queued' else 'failed' end) as status,
    d.opened_at
from push_messages m
join push_blocks b on b.organization_id = m.organization_id and b.env = m.env and b.message_id = m.id
cross join lateral unnest(b.devices) with ordinality as u (device_id, n)
left join push_dispatches d
    on
        d.organization_id = m.organization_id and d.env = m.env and d.message_id = m.id
        and d.place = b.number * 500 + u.n - 1
where
    m.organization_id = $1 and m.env = $2 and m.id = $3
    and b.number <= $4::bigint / 500
    and b.number * 500 + u.n - 1 < $4::bigint
order by b.number desc, u.n desc
limit $5;

-- name: make_up
-- What of an organization was due while it stood still, from $2 to $3, has as much of its day left as it had; what has not begun and
-- would show something in quiet hours, which end at $4, is due then. In the order in which everybody locks several.
with held as (
    select env, id, $4::timestamptz is not null and status = any($5::text[]) and rate_kind <> $6 as deferred
    from push_messages
    where organization_id = $1 and open and due_at < $3
    order by env, id
    for no key update
),
made_up as (
    update push_messages m set
        due_at = case when h.deferred then $4 else m.due_at + ($3 - greatest(m.due_at, $2)) end,
        quiet_deferred_to = case when h.deferred then $4 else m.quiet_deferred_to end,
        status = case when h.deferred then $7 else m.status end,
        updated_at = case when h.deferred then $3 else m.updated_at end
    from held h
    where m.organization_id = $1 and m.env = h.env and m.id = h.id
)
update push_blocks b set ready = false
from held h
where h.deferred and b.organization_id = $1 and b.env = h.env and b.message_id = h.id and b.ready;

-- name: end
-- No block of it leaves any more.
with ended as (
    update push_messages set status = $4, open = false, finished_at = $5, updated_at = $5
    where organization_id = $1 and env = $2 and id = $3
)
update push_blocks set ready = false
where organization_id = $1 and env = $2 and message_id = $3 and ready;

-- name: openable
select g.n, m.organization_id, m.env, m.id, m.dispatch_key
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as g (organization_id, env, first_id, last_id, n)
join push_messages m
    on m.organization_id = g.organization_id and m.env = g.env and m.id >= g.first_id and m.id < g.last_id;

-- name: open
-- The first time of a device that has the notification; counted in the same commit.
with first as (
    update push_dispatches d set opened_at = $5
    from (
        select h.organization_id, h.env, h.message_id, h.place
        from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as g (organization_id, env, message_id, place)
        join push_dispatches h
            on h.organization_id = g.organization_id and h.env = g.env and h.message_id = g.message_id and h.place = g.place
        where h.status = 'delivered' and h.opened_at is null
        order by h.organization_id, h.env, h.message_id, h.place
        for no key update of h
    ) held
    where
        d.organization_id = held.organization_id and d.env = held.env and d.message_id = held.message_id
        and d.place = held.place
    returning d.organization_id, d.env, d.message_id, d.place, d.platform
),
gains as (
    select organization_id, env, message_id, platform, count(*) as opened from first group by 1, 2, 3, 4
),
counted as (
    update push_counts c set opened = c.opened + g.opened
    from gains g
    where
        c.organization_id = g.organization_id and c.env = g.env and c.message_id = g.message_id and c.platform = g.platform
)
select message_id, place from first;

-- name: lock_contacts
-- The contacts of who opened; in the order of their ids, as everybody locks contacts who changes several, each found through the key.
-- In a statement of its own, as campaigns.sql says.
select c.organization_id, c.env, c.id
from (
    select distinct v.organization_id, v.env, v.contact_id
    from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as g (organization_id, env, message_id, place)
    cross join lateral (
        select device_id from push_dispatches
        where organization_id = g.organization_id and env = g.env and message_id = g.message_id and place = g.place
        offset 0
    ) d
    cross join lateral (
        select organization_id, env, contact_id from push_devices
        where organization_id = g.organization_id and env = g.env and id = d.device_id and contact_id is not null
        offset 0
    ) v
    order by v.organization_id, v.env, v.contact_id
    offset 0
) p
cross join lateral (
    select organization_id, env, id from contacts
    where organization_id = p.organization_id and env = p.env and id >= p.contact_id
    order by id
    limit 1
    for no key update
) c
where c.id = p.contact_id;

-- name: touch
-- Contacts that this transaction has locked: they were there (C12.1).
update contacts c set last_interaction_at = $4
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
where
    c.organization_id = g.organization_id and c.env = g.env and c.id = g.id
    and (c.last_interaction_at is null or c.last_interaction_at < $4);

-- name: opened
-- Of devices that the message has: one without a row is queued.
select g.message_id, g.place, d.opened_at
from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as g (organization_id, env, message_id, place)
join push_blocks b
    on
        b.organization_id = g.organization_id and b.env = g.env and b.message_id = g.message_id
        and b.number = g.place / 500 and g.place % 500 < cardinality(b.devices)
left join push_dispatches d
    on d.organization_id = g.organization_id and d.env = g.env and d.message_id = g.message_id and d.place = g.place;

-- Retention (C32), of messages that are over -------------------------------------------------------------------------

-- name: clear_content
-- One page of an environment along the key, after the id $3: those before $4 lose what was shown. Answers the page's last id.
with page as materialized (
    select id, not open and has_content as clears
    from (
        select
            id, open,
            coalesce(title, body, deep_link, image_url, data::text) is not null or actions <> '[]' as has_content
        from push_messages
        where organization_id = $1 and env = $2 and id > $3 and id < $4
        order by id
        limit $5
    ) m
),
cleared as (
    update push_messages m
    set title = null, body = null, deep_link = null, image_url = null, actions = '[]', data = null
    from (
        select h.id from page p
        join push_messages h on h.organization_id = $1 and h.env = $2 and h.id = p.id
        where p.clears
        order by h.id
        for no key update of h
    ) g
    where m.organization_id = $1 and m.env = $2 and m.id = g.id
)
select max(id) from page;

-- name: past
-- The next ones before the id $4.
select id from push_messages
where organization_id = $1 and env = $2 and id > $3 and id < $4 and not open
order by id
limit $5;

-- name: forget_dispatches
delete from push_dispatches
where
    organization_id = $1 and env = $2 and message_id = $3
    and place = any(array(
        select place from push_dispatches
        where organization_id = $1 and env = $2 and message_id = $3
        order by place
        limit $4
        for update
    ));

-- name: forget_blocks
delete from push_blocks
where
    organization_id = $1 and env = $2 and message_id = $3
    and number = any(array(
        select number from push_blocks
        where organization_id = $1 and env = $2 and message_id = $3
        order by number
        limit $4
        for update
    ));

-- name: forget
-- One of which no device is left.
with counted as (
    delete from push_counts where organization_id = $1 and env = $2 and message_id = $3
)
delete from push_messages where organization_id = $1 and env = $2 and id = $3 and not open;
