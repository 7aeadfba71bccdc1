-- name: months
-- The tables of months, attached to `messages` or not any more. `emptied`: their messages have no content left, which the
-- table itself remembers.
select
    c.relname as name,
    i.inhrelid is not null as attached,
    coalesce(i.inhdetachpending, false) as half_detached,
    obj_description(c.oid, 'pg_class') is not distinct from 'without content' as emptied
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname ~ '^messages_\d{4}_\d{2}$'
order by c.relname;

-- name: last_confirmation
-- The last of what was done before $1, which is before the id $2 in the audit: an entry there, a minute in which a number sent, a
-- provider's callback.
select
    (
        select max(a.id)
        from organizations o
        cross join lateral (
            select id from audit where organization_id = o.id and id < $2 order by id desc limit 1
        ) a
    ) as audit_id,
    (
        select max(m.minute)
        from (
            select organization_id, id from numbers
            union all
            select organization_id, id from social_accounts
        ) n
        cross join lateral (
            select minute from sender_minutes
            where organization_id = n.organization_id and sender_id = n.id and minute < $1
            order by minute desc
            limit 1
        ) m
    ) as sent_at,
    (select max(received_at) from callbacks where received_at < $1) as called_at;

-- name: remember_emptied
comment on table {month} is 'without content'

-- name: clear_content
-- One page of a month along its key, after the row ($1, $2, $3, $4): what is older than the id $5 loses its content, unless it
-- has still to be sent. Answers the page's last row, and how many of it keep their content.
with page as materialized (
    select
        ctid as place, organization_id, env, channel, id,
        payload is not null or template_vars is not null or receipt is not null or details ? 'subject' as has_content
    from {month}
    where (organization_id, env, channel, id) > ($1, $2, $3, $4)
    order by organization_id, env, channel, id
    limit $6
),
cleared as (
    update {month} m
    set payload = null, template_vars = null, receipt = null, media_storage = null, details = details - 'subject'
    from page p
    where
        m.ctid = p.place and p.has_content and p.id < $5
        and not exists (select 1 from dispatch d where d.organization_id = p.organization_id and d.id = p.id)
    returning m.id
)
select
    organization_id, env, channel, id,
    (select count(*) from page where has_content) - (select count(*) from cleared) as kept
from page
order by organization_id desc, env desc, channel desc, id desc
limit 1;

-- name: waiting
-- Whether any message with an id in [$1, $2) has still to be sent.
select exists (
    select 1 from organizations o
    where exists (select 1 from dispatch d where d.organization_id = o.id and d.id >= $1 and d.id < $2)
);

-- name: forget_provider_ids
-- One page of a month along its key, after the row ($1, $2, $3, $4): what finds these messages by the ids that providers name goes, and
-- by their contacts: also a moment of departure that was corrected a little later.
with page as materialized (
    select organization_id, env, channel, id, sender_id, provider_message_id, contact_id, sent_at
    from {month}
    where (organization_id, env, channel, id) > ($1, $2, $3, $4)
    order by organization_id, env, channel, id
    limit $5
),
touches as (
    delete from contact_touches t
    using (
        select f.place
        from page p
        cross join lateral (
            select ctid as place, message_id from contact_touches
            where
                organization_id = p.organization_id and env = p.env and contact_id = p.contact_id
                and sent_at between p.sent_at - interval '1 day' and p.sent_at + interval '1 day'
            offset 0
        ) f
        where f.message_id = p.id
    ) q
    where t.ctid = q.place
),
outbound as (
    delete from provider_messages k
    using page p
    where k.reference in (p.provider_message_id, p.id) and k.message_id = p.id
),
inbound as (
    delete from inbound_ids k
    using page p
    where
        k.organization_id = p.organization_id and k.sender_id = p.sender_id
        and k.provider_message_id = p.provider_message_id and k.message_id = p.id
)
select organization_id, env, channel, id from page
order by organization_id desc, env desc, channel desc, id desc
limit 1;

-- name: detach
alter table messages detach partition {month} concurrently

-- name: finish_detaching
alter table messages detach partition {month} finalize

-- name: drop
drop table {month}

-- name: tier_recipients
-- One page along the key, after ($1, $2, $3): those before $4 go. A row that somebody holds is left for the next time: so
-- this waits for nobody, and nobody can wait for it in a circle.
with page as materialized (
    select organization_id, sender_id, recipient_hash, last_at as at
    from tier_recipients
    where (organization_id, sender_id, recipient_hash) > ($1, $2, $3)
    order by organization_id, sender_id, recipient_hash
    limit $5
),
old as materialized (
    select t.ctid as place
    from page p
    join tier_recipients t
        on t.organization_id = p.organization_id and t.sender_id = p.sender_id and t.recipient_hash = p.recipient_hash
    where p.at < $4 and t.last_at < $4
    for update of t skip locked
),
gone as (
    delete from tier_recipients t
    using old o
    where t.ctid = o.place
)
select organization_id, sender_id, recipient_hash from page
order by organization_id desc, sender_id desc, recipient_hash desc
limit 1;

-- name: chat_windows
-- As above.
with page as materialized (
    select organization_id, sender_id, recipient_hash, last_inbound_at as at
    from chat_windows
    where (organization_id, sender_id, recipient_hash) > ($1, $2, $3)
    order by organization_id, sender_id, recipient_hash
    limit $5
),
old as materialized (
    select w.ctid as place
    from page p
    join chat_windows w
        on w.organization_id = p.organization_id and w.sender_id = p.sender_id and w.recipient_hash = p.recipient_hash
    where p.at < $4 and w.last_inbound_at < $4
    for update of w skip locked
),
gone as (
    delete from chat_windows w
    using old o
    where w.ctid = o.place
)
select organization_id, sender_id, recipient_hash from page
order by organization_id desc, sender_id desc, recipient_hash desc
limit 1;

-- name: reached_recipients
-- As above, of four columns; those before $5 go.
with page as materialized (
    select env, channel, address_hash, organization_id, reached_at as at
    from reached_recipients
    where (env, channel, address_hash, organization_id) > ($1, $2, $3, $4)
    order by env, channel, address_hash, organization_id
    limit $6
),
old as materialized (
    select r.ctid as place
    from page p
    join reached_recipients r
        on
            r.env = p.env and r.channel = p.channel and r.address_hash = p.address_hash
            and r.organization_id = p.organization_id
    where p.at < $5 and r.reached_at < $5
    for update of r skip locked
),
gone as (
    delete from reached_recipients r
    using old o
    where r.ctid = o.place
)
select env, channel, address_hash, organization_id from page
order by env desc, channel desc, address_hash desc, organization_id desc
limit 1;

-- name: sender_minutes
delete from sender_minutes
where ctid = any(array(
    select m.place
    from (
        select organization_id, id from numbers
        union all
        select organization_id, id from social_accounts
    ) n
    cross join lateral (
        select ctid as place from sender_minutes
        where organization_id = n.organization_id and sender_id = n.id and minute < $1
        limit $2
    ) m
    limit $2
));

-- name: audit
delete from audit
where
    organization_id = $1
    and id = any(array(select id from audit where organization_id = $1 and id < $2 order by id limit $3));
