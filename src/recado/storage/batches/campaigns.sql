-- name: open
-- Campaigns that messages were just accepted for. Their totals are locked by this transaction already, so that no completion
-- is under way; one that runs is only looked at.
with given as (
    select organization_id, env, campaign_id, array_agg(distinct channel order by channel) as channels
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, campaign_id, channel)
    group by 1, 2, 3
)
insert into campaigns as c (organization_id, env, campaign_id, status, channels, first_message_at)
select g.organization_id, g.env, g.campaign_id, $5, g.channels, t.first_at
from given g
join totals t
    on t.organization_id = g.organization_id and t.env = g.env and t.kind = 'campaign' and t.key = g.campaign_id
where
    not exists (
        select from campaigns k
        where
            k.organization_id = g.organization_id and k.env = g.env and k.campaign_id = g.campaign_id
            and k.status = $5 and k.channels @> g.channels
    )
order by 1, 2, 3
on conflict (organization_id, env, campaign_id) do update
set
    status = excluded.status,
    completed_at = null,
    channels = (
        select array_agg(distinct channel order by channel) from unnest(c.channels || excluded.channels) as a (channel)
    );

-- name: lock_several
-- In one order, each found through the key, whatever the statistics say (contacts.sql). A statement of its own: one that waits for a
-- lock does not see the row at the place to which another has moved it meanwhile, and cannot change it there.
select c.campaign_id
from (
    select *
    from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, campaign_id)
    order by 1, 2, 3
    offset 0
) g
cross join lateral (
    select campaign_id from campaigns
    where organization_id = g.organization_id and env = g.env and campaign_id >= g.campaign_id
    order by campaign_id
    limit 1
    for no key update
) c
where c.campaign_id = g.campaign_id;

-- name: add
-- Clicks, opens and conversions of campaigns that this transaction has locked, each found as there.
update campaigns c
set
    clicks = c.clicks + q.clicks, opens = c.opens + q.opens, conversions = c.conversions + q.conversions,
    conversion_value = c.conversion_value + q.conversion_value
from (
    select k.place, g.clicks, g.opens, g.conversions, g.conversion_value
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::numeric[])
        as g (organization_id, env, campaign_id, clicks, opens, conversions, conversion_value)
    cross join lateral (
        select ctid as place, campaign_id from campaigns
        where organization_id = g.organization_id and env = g.env and campaign_id >= g.campaign_id
        order by campaign_id
        limit 1
    ) k
    where k.campaign_id = g.campaign_id
) q
where c.ctid = q.place;

-- name: through
-- Running campaigns of which nothing is queued or sending, that got no message since $2, and have no batch that would make
-- more.
select c.organization_id, c.env, c.campaign_id
from campaigns c
join totals t
    on t.organization_id = c.organization_id and t.env = c.env and t.kind = 'campaign' and t.key = c.campaign_id
where
    c.status = $1 and t.queued = 0 and t.last_at <= $2
    and not exists (
        select from batches b
        where
            b.organization_id = c.organization_id and b.env = c.env and b.campaign_id = c.campaign_id and b.open
            and b.status in ('building', 'running', 'paused')
    )
order by 1, 2, 3
limit $3;

-- name: lock
-- The totals are locked before the campaign, as where messages are accepted.
select queued, last_at from totals
where organization_id = $1 and env = $2 and kind = 'campaign' and key = $3
for update;

-- name: complete
-- A batch may have come since the campaign seemed to be through.
update campaigns
set status = $4, completed_at = $5, completions = completions + 1
where
    organization_id = $1 and env = $2 and campaign_id = $3 and status = any($6::text[])
    and not exists (
        select from batches
        where
            organization_id = $1 and env = $2 and campaign_id = $3 and open
            and status in ('building', 'running', 'paused')
    )
returning completions;

-- name: campaign
-- Campaigns of `found` with their counts. Their batches add what they left out, and what they have still to make.
select
    c.organization_id, c.env, c.campaign_id, c.status, c.channels, c.first_message_at, c.completed_at, c.completions, c.clicks,
    c.opens, c.conversions, c.conversion_value,
    t.accepted, t.queued, t.sent, t.delivered, t.read, t.failed, t.archived, t.charged_coins,
    t.last_at as last_message_at, b.skipped, b.unmade
from ({found}) c
join totals t
    on t.organization_id = c.organization_id and t.env = c.env and t.kind = 'campaign' and t.key = c.campaign_id
cross join lateral (
    select
        coalesce(sum(k.skipped), 0)::bigint as skipped,
        coalesce(sum(greatest(k.requested - k.skipped - coalesce(u.accepted, 0), 0)), 0)::bigint as unmade
    from batches k
    left join totals u
        on u.organization_id = k.organization_id and u.env = k.env and u.kind = 'batch' and u.key = k.id
    where k.organization_id = c.organization_id and k.env = c.env and k.campaign_id = c.campaign_id
) b
order by c.first_message_at desc, c.campaign_id desc;

-- name: by_id
select * from campaigns where organization_id = $1 and env = $2 and campaign_id = $3;

-- name: page
select * from campaigns
where
    organization_id = $1 and env = $2
    and ($3::text is null or status = $3)
    and ($4::timestamptz is null or first_message_at >= $4) and ($5::timestamptz is null or first_message_at < $5)
order by first_message_at desc, campaign_id desc
limit $6 offset $7;

-- name: page_count
select count(*)
from (
    select
    from campaigns
    where
        organization_id = $1 and env = $2
        and ($3::text is null or status = $3)
        and ($4::timestamptz is null or first_message_at >= $4) and ($5::timestamptz is null or first_message_at < $5)
    limit 10001
) matches;
