-- Campaigns (C15.6): the messages of one campaignId, and whether they are through. Their counts are in `totals`.

create table campaigns (
    organization_id id not null,
    env text not null,
    campaign_id text collate "C" not null,
    status text not null, -- running, completed
    channels text[] not null,
    first_message_at timestamptz not null,
    completed_at timestamptz, -- null while it runs
    completions integer not null default 0,
    primary key (organization_id, env, campaign_id)
) with (fillfactor = 70);
create index campaigns_running on campaigns (organization_id, env, campaign_id) where status = 'running';
create index campaigns_newest on campaigns (organization_id, env, first_message_at, campaign_id);

-- Null: its messages leave from several numbers (a resend, C15.4).
alter table batches alter column number_id drop not null;

-- What batches add to the totals of their campaign: recipients that were asked for, and those that were left out.
create index batches_of_campaign on batches (organization_id, env, campaign_id) where campaign_id is not null;

-- Messages from before there were campaigns: counted as they are. A campaign that was through long ago is completed without
-- its event.
do $$
declare
    alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
begin
    update dispatch d
    set campaign_id = m.campaign_id
    from messages m
    where
        m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
        and m.campaign_id is not null;

    insert into totals (
        organization_id, env, kind, key, accepted, queued, sent, delivered, read, failed, archived, first_at, last_at
    )
    select
        organization_id, env, 'campaign', campaign_id, count(*),
        count(*) filter (where status in ('queued', 'sending')),
        count(*) filter (where status = 'sent'),
        count(*) filter (where status = 'delivered'),
        count(*) filter (where status = 'read'),
        count(*) filter (where status = 'failed'),
        count(*) filter (where status = 'archived'),
        min(accepted_at), max(accepted_at)
    from (
        select
            m.*,
            timestamptz 'epoch' + interval '1 millisecond' * (
                select sum((strpos(alphabet, substr(m.id, 4 + place, 1)) - 1) * (62::numeric ^ (8 - place)))::bigint
                from generate_series(1, 8) as places (place)
            ) as accepted_at
        from messages m
        where m.campaign_id is not null and m.direction = 'outbound'
    ) counted
    group by organization_id, env, campaign_id
    on conflict do nothing;

    insert into campaigns (
        organization_id, env, campaign_id, status, channels, first_message_at, completed_at, completions
    )
    select
        t.organization_id, t.env, t.key,
        case when through.is then 'completed' else 'running' end,
        (
            select array_agg(distinct m.channel order by m.channel)
            from messages m
            where m.organization_id = t.organization_id and m.env = t.env and m.campaign_id = t.key
        ),
        t.first_at,
        case when through.is then t.last_at + interval '15 minutes' end,
        case when through.is then 1 else 0 end
    from totals t
    cross join lateral (select t.queued = 0 and t.last_at <= now() - interval '15 minutes' as is) through
    where t.kind = 'campaign';
end
$$;
