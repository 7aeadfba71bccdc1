-- What executions ask of other records, many of them in a statement. One look-up a row, whatever the planner thinks of the tables.

-- name: contacts
-- Contacts that exist, and whether the opt-out registry holds the phone or the address of each as it is spelled there.
select
    g.n, c.*,
    exists (
        select from opt_outs
        where
            organization_id = g.organization_id and env = g.env and kind = 'phone'
            and hash = c.phone_hash
        offset 0
    )
    or exists (
        select from opt_outs
        where
            organization_id = g.organization_id and env = g.env and kind = 'email'
            and hash = sha256(convert_to(g.organization_id || ':' || c.email_key, 'UTF8'))
        offset 0
    ) as registered
from unnest(unpack($1), unpack($2), unpack($3)) with ordinality as g (organization_id, env, contact_id, n)
cross join lateral (
    select {columns} from contacts
    where organization_id = g.organization_id and env = g.env and id >= g.contact_id and id <= g.contact_id
    order by id
    limit 1
    /*lock*/
) c;

-- name: earlier
-- Of sends that executions passed: how each was passed, its message, and the row of that while it is queued or under way. An
-- e-mail is read when it is opened (C9.6).
select
    g.n, s.at, s.resultado, s.channel, m.id as message_id, m.sender_id, m.sent_at, m.delivered_at,
    coalesce(m.read_at, m.opened_at) as read_at, m.failed_at, m.archived_at, m.called_at, m.outcome_certain, d.id is not null as in_queue, d.reason,
    coalesce(d.claimed_at, d.repeat_of) as called_for_at
from unnest($1::integer[], $2::text[], $3::text[], $4::text[]) as g (n, organization_id, execution_id, step_id)
cross join lateral (
    select * from execution_steps
    where organization_id = g.organization_id and execution_id = g.execution_id and step_id = g.step_id
    limit 1
) s
left join lateral (
    select * from messages
    where organization_id = g.organization_id and env = s.env and channel = s.channel and id = s.message_id
    limit 1
) m on true
left join lateral (
    select id, reason, claimed_at, repeat_of from dispatch
    where organization_id = g.organization_id and id = s.message_id
    limit 1
) d on true;

-- name: first_clicks
-- When a link of each of these messages was opened first.
select t.message_id, min(t.first_clicked_at) as at
from unnest($1::text[]) as g (message_id)
cross join lateral (
    select message_id, first_clicked_at from tracked_links
    where message_id = g.message_id and first_clicked_at is not null
    offset 0
) t
group by t.message_id;

-- name: first_replies
-- When each of these contacts wrote first to a sender ($6; null: to any) on one of the channels ($7: a text with spaces), from a moment on
-- ($8). $5: before which id nothing has come since then.
select g.n, r.at
from unnest(
    $1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[]
) as g (n, organization_id, env, contact_id, first_id, sender_id, channels, since)
cross join lateral (
    select delivered_at as at from messages
    where
        organization_id = g.organization_id and env = g.env and contact_id = g.contact_id and id >= g.first_id
        and direction = 'inbound' and delivered_at >= g.since and channel = any(string_to_array(g.channels, ' '))
        and (g.sender_id is null or sender_id = g.sender_id)
    order by organization_id, env, contact_id, id
    limit 1
) r;

-- name: first_events
-- When each of these contacts did first what an event of this name tells, from a moment on; of its events since then the last $7 are
-- looked at.
select g.n, e.at
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
    as g (n, organization_id, env, contact_id, name, since)
cross join lateral (
    select min(occurred_at) as at
    from (
        select name, occurred_at from customer_events
        where organization_id = g.organization_id and env = g.env and contact_id = g.contact_id and occurred_at >= g.since
        order by organization_id desc, env desc, contact_id desc, occurred_at desc
        limit $7
    ) l
    where l.name = g.name
) e
where e.at is not null;

-- name: capped
-- How many messages of journeys each of these contacts got after a moment, up to $6; those that failed, or were withdrawn, before they
-- left are not counted (C9.8.2).
select g.n, c.count
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
    as g (n, organization_id, env, contact_id, after)
cross join lateral (
    select count(*)
    from (
        select from execution_steps s
        where
            s.organization_id = g.organization_id and s.env = g.env and s.capped_contact_id = g.contact_id
            and s.at > g.after
            and not exists (
                select from messages m
                where
                    m.organization_id = s.organization_id and m.env = s.env and m.channel = s.channel and m.id = s.message_id
                    and m.sent_at is null and (m.failed_at is not null or m.archived_at is not null)
                    and m.outcome_certain is not false
                offset 0
            )
        limit $6
    ) counted
) c;
