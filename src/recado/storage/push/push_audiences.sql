-- Who gets a push message: registered devices whose contact, if there is one, has not refused (C22.2). Those of an app that is being
-- removed are none.

-- name: everybody
select d.id, d.app_id, d.platform
from push_devices d
left join contacts c on c.organization_id = d.organization_id and c.env = d.env and c.id = d.contact_id
where
    d.organization_id = :organization_id and d.env = :env and d.status = 'registered' and d.platform = any(:platforms::text[])
    and c.opt_in_status is distinct from 'denied'
    and exists (select from push_apps p where p.organization_id = d.organization_id and p.env = d.env and p.id = d.app_id)

-- name: of_segment
select d.id, d.app_id, d.platform
from contacts c
join push_devices d on d.organization_id = c.organization_id and d.env = c.env and d.contact_id = c.id
where
    c.organization_id = :organization_id and c.env = :env and c.opt_in_status <> 'denied' and {condition}
    and d.status = 'registered' and d.platform = any(:platforms::text[])
    and exists (select from push_apps p where p.organization_id = d.organization_id and p.env = d.env and p.id = d.app_id)

-- name: of_tokens
select d.id, d.app_id, d.platform
from push_devices d
left join contacts c on c.organization_id = d.organization_id and c.env = d.env and c.id = d.contact_id
where
    d.organization_id = :organization_id and d.env = :env and d.status = 'registered' and d.platform = any(:platforms::text[])
    and c.opt_in_status is distinct from 'denied'
    and (d.id = any(:device_ids::text[]) or d.token_hash = any(:token_hashes::bytea[]))
    and exists (select from push_apps p where p.organization_id = d.organization_id and p.env = d.env and p.id = d.app_id)

-- name: reach
select platform, count(*) as reach from ({audience}) a group by platform

-- name: fix
-- The audience in blocks of :block devices of one app and platform, in the order of their ids; answers the reach by platform.
with audience as (
    {audience}
),
placed as (
    select id, app_id, platform, (row_number() over (partition by app_id, platform order by id) - 1) / :block::integer as part
    from audience
),
made as (
    insert into push_blocks (organization_id, env, message_id, number, app_id, platform, devices, ready)
    select
        :organization_id, :env, :message_id, row_number() over (order by app_id, platform, part) - 1, app_id, platform,
        array_agg(id order by id), :ready
    from placed
    group by app_id, platform, part
    returning platform, cardinality(devices) as devices
),
counted as (
    select platform, sum(devices)::integer as reach from made group by platform
),
noted as (
    insert into push_counts (organization_id, env, message_id, platform, reach)
    select :organization_id, :env, :message_id, platform, reach from counted
)
select platform, reach from counted
