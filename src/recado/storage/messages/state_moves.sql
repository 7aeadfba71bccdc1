-- name: lock
-- These messages of a channel ($4), where they are in one of these states ($5); locked in the order of their ids until the commit.
-- One by one through the key, as in replacements.sql.
select g.organization_id, g.env, g.id, m.status, m.batch_id, m.campaign_id
from (
    select * from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id) order by id offset 0
) g
cross join lateral (
    select status, batch_id, campaign_id
    from messages
    where
        organization_id = g.organization_id and env = g.env and channel = $4 and id = g.id and status = any($5::text[])
    limit 1
    for update
) m;

-- name: as_they_are
-- These messages of a channel ($4); one whose month is gone as well.
select g.organization_id, g.env, g.id, coalesce(m.status, 'sent') as status, m.batch_id, m.campaign_id
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, id)
left join lateral (
    select status, batch_id, campaign_id
    from messages
    where organization_id = g.organization_id and env = g.env and channel = $4 and id = g.id
    offset 0
) m on true;

-- name: move
-- Messages that this transaction has locked come to another state ($5), with the moment ($7) in the column that says when ($6). $8: the
-- cause of a failure, as callers read it; $9 and $10: its code, and whether it is certain.
with moved as (
    update messages m
    set
        status = g.to_status,
        sent_at = case g.reached when 'sent_at' then coalesce(m.sent_at, $7::timestamptz) else m.sent_at end,
        delivered_at = case g.reached when 'delivered_at' then coalesce(m.delivered_at, $7::timestamptz) else m.delivered_at end,
        read_at = case g.reached when 'read_at' then coalesce(m.read_at, $7::timestamptz) else m.read_at end,
        failed_at = case g.reached when 'failed_at' then $7::timestamptz end,
        last_error = $8, failure_code = $9, outcome_certain = $10, updated_at = $7
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
        as g (organization_id, env, channel, id, to_status, reached)
    where m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
    returning m.organization_id, m.env, m.channel, m.id, m.contact_id, m.sent_at, g.reached
)
insert into contact_touches (organization_id, env, contact_id, sent_at, message_id, channel) -- dispatch.sql: sent
select organization_id, env, contact_id, sent_at, id, channel from moved where reached = 'sent_at' and contact_id is not null
on conflict do nothing;
