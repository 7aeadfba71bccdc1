-- What came of the messages of steps, as signals tell of them; those of tests are left out (C9.10).

-- name: of_messages
-- What these messages came to by now, and what is counted of that: bits, as `MessageOutcome`.
select
    e.organization_id, e.env, e.journey_id, s.execution_id, s.step_id, s.outcomes as before,
    (m.sent_at is not null)::integer + 2 * (m.delivered_at is not null or m.read_at is not null)::integer
    + 4 * (m.read_at is not null)::integer + 8 * (t.first_clicked_at is not null)::integer
    + 32 * (m.failed_at is not null)::integer as now
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (organization_id, env, journey_id, message_id)
cross join lateral (
    select execution_id, step_id, channel, message_id, outcomes from execution_steps
    where organization_id = g.organization_id and message_id >= g.message_id and message_id <= g.message_id
    order by organization_id, message_id
    limit 1
) s
cross join lateral (
    select organization_id, env, journey_id from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = g.journey_id
        and id >= s.execution_id and id <= s.execution_id and not teste
    order by id
    limit 1
) e
cross join lateral (
    select sent_at, delivered_at, coalesce(read_at, opened_at) as read_at, failed_at from messages
    where organization_id = g.organization_id and env = g.env and channel = s.channel and id = s.message_id
    limit 1
) m
left join lateral (
    select first_clicked_at from tracked_links
    where message_id = s.message_id and first_clicked_at is not null
    limit 1
) t on true;

-- name: of_contacts
-- The messages that these contacts answered, and that are not counted as answered: of each the $5 executions that began last, at
-- $4 or later. $6, $7: by the channel of a send, where an answer may come; $8: the channel on which it comes to the sender.
select e.organization_id, e.env, e.journey_id, s.execution_id, s.step_id, s.outcomes as before, s.outcomes + 16 as now
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, contact_id)
cross join lateral (
    select organization_id, env, journey_id, contact_id, id from executions
    where
        organization_id = g.organization_id and env = g.env and contact_id = g.contact_id and started_at >= $4
        and not teste
    order by organization_id desc, env desc, contact_id desc, id desc
    limit $5
) e
cross join lateral (
    select execution_id, step_id, channel, message_id, outcomes from execution_steps
    where
        organization_id = g.organization_id and execution_id >= e.id and execution_id <= e.id
        and message_id is not null and outcomes & 16 = 0
    order by organization_id, execution_id
    limit 50 -- a way has no more steps
) s
cross join lateral (
    select id, sender_id, sent_at from messages
    where
        organization_id = g.organization_id and env = g.env and channel = s.channel and id = s.message_id
        and sent_at is not null
    limit 1
) m
join unnest($6::text[], $7::text[]) as a (sent_on, channels) on a.sent_on = s.channel
where exists (
    select from messages r
    where
        r.organization_id = g.organization_id and r.env = g.env and r.contact_id = g.contact_id and r.id >= m.id
        and r.direction = 'inbound' and r.delivered_at >= m.sent_at
        and r.channel = any(string_to_array(a.channels, ' ')) and (s.channel <> $8 or r.sender_id = m.sender_id)
    offset 0
);

-- name: note
-- What is counted of these messages now. Another may have counted meanwhile: then nothing is answered of it.
update execution_steps s
set outcomes = g.now
from (
    select h.*, x.place
    from unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::smallint[])
        as h (organization_id, execution_id, step_id, before, now)
    cross join lateral (
        select ctid as place from execution_steps
        where organization_id = h.organization_id and execution_id = h.execution_id and step_id = h.step_id
        limit 1
    ) x
) g
where s.ctid = g.place and s.outcomes = g.before
returning s.organization_id, s.execution_id, s.step_id;
