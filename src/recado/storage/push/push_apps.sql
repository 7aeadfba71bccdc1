-- name: in_use
select exists (
    select from push_messages m
    join push_blocks b on b.organization_id = m.organization_id and b.env = m.env and b.message_id = m.id
    where m.organization_id = $1 and m.env = $2 and m.open and b.app_id = $3
)

-- name: delete_devices
-- Those of the app among the next $5 devices of anybody's; answers the last of these. Held in the order of their ids, as everybody
-- locks devices who changes several.
with seen as materialized (
    select id, app_id from push_devices
    where organization_id = $1 and env = $2 and id > $4
    order by id limit $5
),
held as materialized (
    select d.id from seen s
    join push_devices d on d.organization_id = $1 and d.env = $2 and d.id = s.id
    where s.app_id = $3
    order by d.id
    for update of d
),
gone as (
    delete from push_devices d using held h where d.organization_id = $1 and d.env = $2 and d.id = h.id
    returning d.contact_id, d.status
),
fewer as materialized (
    select c.id, f.devices
    from (
        select contact_id as id, count(*) as devices from gone
        where status = 'registered' and contact_id is not null
        group by contact_id
        order by contact_id
    ) f
    cross join lateral (
        select id from contacts where organization_id = $1 and env = $2 and id = f.id for no key update
    ) c
),
counted as ( -- their contacts have fewer (`count` in push_devices.sql)
    update contacts c set push_devices = c.push_devices - f.devices
    from fewer f
    where c.organization_id = $1 and c.env = $2 and c.id = f.id
)
select count(*) as looked_at, max(id::text) as last_id from seen

-- name: note_removal
insert into push_app_removals (organization_id, env, app_id, after_id) values ($1, $2, $3, $4)
on conflict (organization_id, env, app_id) do update set after_id = excluded.after_id

-- name: removals
select organization_id, env, app_id, after_id from push_app_removals
order by organization_id, env, app_id limit $1

-- name: removed
delete from push_app_removals where organization_id = $1 and env = $2 and app_id = $3
