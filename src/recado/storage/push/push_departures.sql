-- name: due
-- Messages whose time has come may leave.
with due as (
    select organization_id, env, id from push_messages
    where open and status = 'scheduled' and due_at <= $1
    order by due_at limit $2
    for no key update skip locked
),
moved as (
    update push_messages m set status = $3, updated_at = $1
    from due d
    where m.organization_id = d.organization_id and m.env = d.env and m.id = d.id
)
update push_blocks b set ready = true
from due d
where b.organization_id = d.organization_id and b.env = d.env and b.message_id = d.id
returning b.message_id;

-- name: lanes
-- By which apps and platforms something may leave now, each found by one look into the index. Queues of suspended organizations stand
-- still (C24.1).
with recursive ready as (
    (
        select organization_id, env, app_id, platform from push_blocks
        where ready
        order by organization_id, env, app_id, platform limit 1
    )
    union all
    select n.* from ready r
    cross join lateral (
        select organization_id, env, app_id, platform from push_blocks
        where ready and (organization_id, env, app_id, platform) > (r.organization_id, r.env, r.app_id, r.platform)
        order by organization_id, env, app_id, platform limit 1
    ) n
),
again as (
    (
        select organization_id, env, app_id, platform from push_dispatches
        where due_at is not null
        order by organization_id, env, app_id, platform limit 1
    )
    union all
    select n.* from again r
    cross join lateral (
        select organization_id, env, app_id, platform from push_dispatches
        where
            due_at is not null
            and (organization_id, env, app_id, platform) > (r.organization_id, r.env, r.app_id, r.platform)
        order by organization_id, env, app_id, platform limit 1
    ) n
)
select l.* from (
    select * from ready
    union
    select a.* from again a
    where exists (
        select from push_dispatches d
        where
            d.organization_id = a.organization_id and d.env = a.env and d.app_id = a.app_id and d.platform = a.platform
            and d.due_at <= $1
    )
) l
where not exists (select from organizations where id = l.organization_id and status = 'suspended');

-- name: suspended
select id from organizations where id = any($1::text[]) and status = 'suspended';

-- name: claim
-- The next blocks of a lane, the first of each message before the second of any; their messages are under way. So many that
-- there are $5 devices or a few more. Nothing for a process that is not the owner any more (dispatch.sql: claim).
with owner as (
    {owner}
),
next as (
    select b.message_id, b.number, sum(cardinality(b.devices)) over (order by b.number, b.message_id) as devices,
        cardinality(b.devices) as own
    from (
        select message_id, number, devices from push_blocks
        where organization_id = $1 and env = $2 and app_id = $3 and platform = $4 and ready
        order by number, message_id limit 100
    ) b
),
held as (
    select m.id from push_messages m
    where
        m.organization_id = $1 and m.env = $2
        and m.id in (select message_id from next where devices - own < $5::bigint)
        and m.open and exists (select from owner)
        and not exists (select from organizations where id = $1 and status = 'suspended')
    order by m.id
    for no key update
),
begun as (
    update push_messages m set status = $8, started_at = $7, updated_at = $7
    from held h
    where m.organization_id = $1 and m.env = $2 and m.id = h.id and m.status = $9
)
update push_blocks b set ready = false, epoch = $6, claimed_at = $7
from next n
join held h on h.id = n.message_id
where
    n.devices - n.own < $5::bigint
    and b.organization_id = $1 and b.env = $2 and b.message_id = n.message_id and b.number = n.number and b.ready
returning b.message_id, b.number, b.devices;

-- name: claim_again
-- Devices of a lane that are due once more. From now on, until it is settled, the outcome of each is unknown.
update push_dispatches d set due_at = null, code = $7, claimed_at = $5, epoch = $6
from (
    select h.message_id, h.place from push_dispatches h
    where
        h.organization_id = $1 and h.env = $2 and h.app_id = $3 and h.platform = $4 and h.due_at <= $5
        and exists ({owner})
        and not exists (select from organizations where id = $1 and status = 'suspended')
    order by h.due_at limit $8
    for no key update skip locked
) g
where d.organization_id = $1 and d.env = $2 and d.message_id = g.message_id and d.place = g.place
returning d.message_id, d.place, d.device_id, d.attempts;

-- name: targets
-- How these devices stand now. `leaves`: they may be sent to. Those of a contact that refused, was deleted, and has them still, may not.
select
    g.n, d.token, d.p256dh, d.auth, c.phone,
    coalesce(
        d.status = 'registered' and c.opt_in_status is distinct from 'denied'
        and (
            d.contact_id is null or c.id is not null
            or not exists (
                select from contact_erasures e
                where e.organization_id = d.organization_id and e.env = d.env and e.contact_id = d.contact_id and e.refused
            )
        ),
        false
    ) as leaves
from unnest($3::text[]) with ordinality as g (device_id, n)
left join push_devices d on d.organization_id = $1 and d.env = $2 and d.id = g.device_id
left join contacts c on c.organization_id = d.organization_id and c.env = d.env and c.id = d.contact_id
order by g.n;

-- name: hold_messages
-- In one order for all who move several.
select m.* from (
    select distinct * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
) g
join push_messages m on m.organization_id = g.organization_id and m.env = g.env and m.id = g.id
where m.open
order by m.organization_id, m.env, m.id
for no key update of m;

-- name: settle
-- What became of devices whose messages this transaction holds. One that is final stays as it is: a commit that runs once more
-- answers nothing.
insert into push_dispatches (
    organization_id, env, message_id, place, device_id, app_id, platform, status, code, attempts, due_at
)
select *
from unnest(
    $1::text[], $2::text[], $3::text[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::smallint[], $11::timestamptz[]
)
on conflict (organization_id, env, message_id, place) do update set
    status = excluded.status, code = excluded.code, attempts = excluded.attempts, due_at = excluded.due_at, claimed_at = null
where push_dispatches.status = 'queued'
returning organization_id, env, message_id, place, platform, device_id, status;

-- name: count
update push_counts c set
    delivered = c.delivered + g.delivered, failed = c.failed + g.failed, unregistered = c.unregistered + g.unregistered
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::integer[], $7::integer[])
    as g (organization_id, env, message_id, platform, delivered, failed, unregistered)
where
    c.organization_id = g.organization_id and c.env = g.env and c.message_id = g.message_id and c.platform = g.platform;

-- name: finish
-- Of these messages those of which no device is left.
update push_messages m set
    status = case when t.delivered > 0 then $4::text else $5::text end, open = false, finished_at = $6, updated_at = $6
from (
    select c.organization_id, c.env, c.message_id, sum(c.delivered) as delivered
    from (select distinct * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, message_id)) g
    join push_counts c on c.organization_id = g.organization_id and c.env = g.env and c.message_id = g.message_id
    group by 1, 2, 3
    having sum(c.reach) <= sum(c.delivered + c.failed + c.unregistered)
) t
where m.organization_id = t.organization_id and m.env = t.env and m.id = t.message_id and m.open;

-- name: over
update push_blocks b set over = true
from unnest($1::text[], $2::text[], $3::text[], $4::integer[]) as g (organization_id, env, message_id, number)
where b.organization_id = g.organization_id and b.env = g.env and b.message_id = g.message_id and b.number = g.number;

-- name: waiting
-- Of the messages that are due, devices that nothing became of yet.
select m.env, c.platform, sum(c.reach - c.delivered - c.failed - c.unregistered)::bigint as devices, min(m.due_at) as oldest_due
from push_messages m
join push_counts c on c.organization_id = m.organization_id and c.env = m.env and c.message_id = m.id
where
    m.open and m.status <> 'scheduled' and ($1 = '' or (m.organization_id = $1 and m.env = $2))
    and c.reach > c.delivered + c.failed + c.unregistered
group by m.env, c.platform;

-- name: left_claimed
-- Blocks that were claimed in a dead epoch, or in this one, of one lane where it is named, and what of their devices is not known.
select
    b.organization_id, b.env, b.message_id, b.number, b.app_id, b.platform, b.claimed_at, m.dispatch_key,
    array(
        select u.device_id || ' ' || (b.number * 500 + u.n - 1)
        from unnest(b.devices) with ordinality as u (device_id, n)
        where not exists (
            select from push_dispatches d
            where
                d.organization_id = b.organization_id and d.env = b.env and d.message_id = b.message_id
                and d.place = b.number * 500 + u.n - 1
        )
    ) as unknown
from push_blocks b
join push_messages m on m.organization_id = b.organization_id and m.env = b.env and m.id = b.message_id
where
    b.claimed_at is not null and not b.over
    and (b.epoch = $1::bigint or b.epoch not in (select epoch from hosts where ended_at is null))
    and ($3::text is null or b.organization_id = $3 and b.env = $4 and b.app_id = $5 and b.platform = $6)
limit $2;

-- name: left_claimed_again
-- Devices that were claimed once more in a dead epoch, or in this one, of one lane where it is named, and of which no more is known.
select
    d.organization_id, d.env, d.app_id, d.platform, d.message_id, d.place, d.device_id, d.attempts, d.claimed_at, m.dispatch_key
from push_dispatches d
join push_messages m on m.organization_id = d.organization_id and m.env = d.env and m.id = d.message_id
where
    d.claimed_at is not null and m.open
    and (d.epoch = $1::bigint or d.epoch not in (select epoch from hosts where ended_at is null))
    and ($3::text is null or d.organization_id = $3 and d.env = $4 and d.app_id = $5 and d.platform = $6)
limit $2;

-- name: expired
-- The time for which an organization is suspended is not counted: see `make_up` in push_messages.sql.
select organization_id, env, id from push_messages m
where open and due_at <= $1 and not exists (select from organizations where id = m.organization_id and status = 'suspended')
order by due_at limit $2;

-- name: left_of
-- How many devices of the message nothing became of.
select sum(reach - delivered - failed - unregistered)::integer from push_counts
where organization_id = $1 and env = $2 and message_id = $3;

-- name: expire
-- In the transaction that holds the message: nothing becomes of what is left.
with counted as (
    update push_counts set failed = reach - delivered - unregistered
    where organization_id = $1 and env = $2 and message_id = $3
),
given_up as (
    update push_dispatches set status = 'failed', code = coalesce(code, 'expired'), due_at = null, claimed_at = null
    where organization_id = $1 and env = $2 and message_id = $3 and status = 'queued'
),
stopped as (
    update push_blocks set ready = false, over = true
    where organization_id = $1 and env = $2 and message_id = $3 and not over
)
update push_messages m set
    status = case
        when exists (
            select from push_counts where organization_id = $1 and env = $2 and message_id = $3 and delivered > 0
        ) then $4::text
        else $5::text
    end,
    open = false, finished_at = $6, updated_at = $6
where m.organization_id = $1 and m.env = $2 and m.id = $3 and m.open;
