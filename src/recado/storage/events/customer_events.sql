-- name: store
-- One batch of events. Whose `event_id` is taken is left out: also by one that is being stored at this moment, whose end is waited for.
-- Nothing is answered of it.
-- Each look-up goes along its index, whatever the statistics say: by the order that only the right one has (contacts.sql). A contact
-- is looked for by id, external id, phone and e-mail address, in this order; `known` has a part for each key that
-- some event of the batch gives.
-- The last departure to the contact counts, of a message that has got there as far as anybody knows, and that no test of a journey
-- made; of those of the window, the last $16
-- are looked at. No month is opened but those between $19 and $20, in which what left then was accepted.
with given as (
    select *
    from unnest(
        unpack($1), unpack($2), unpack($3), $4::text[], unpack($5), $6::text[], $7::text[], unpack($8), $9::text[],
        $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], unpack($13), unpack($14), unpack($15)
    ) as g (
        organization_id, env, id, event_id, name, contact_id, external_id, phone, email, occurred_at, since, until, value,
        currency, properties
    )
),
resolved as materialized (
    select g.*, c.id as found_id, c.external_id as found_external_id
    from given g
    left join lateral (
        select id, external_id
        from (
            {known}
        ) known
        where hit
        order by place
        limit 1
    ) c on true
),
attributed as materialized (
    select
        r.*, t.id as message_id, t.channel as message_channel, t.sent_at as message_sent_at, t.campaign_id, t.journey_id,
        t.journey_step_id, t.journey_run_id
    from resolved r
    left join lateral (
        select
            d.message_id as id, d.channel, d.sent_at, m.campaign_id, x.journey_id, x.step_id as journey_step_id,
            x.execution_id as journey_run_id
        from (
            select message_id, channel, sent_at from contact_touches
            where
                organization_id = r.organization_id and env = r.env and contact_id = r.found_id
                and sent_at between r.since and r.until
            order by sent_at desc, message_id desc
            limit $16
        ) d
        cross join lateral (
            select status, sent_at, campaign_id, journey_id from messages
            where
                organization_id = r.organization_id and env = r.env and channel = d.channel and id = d.message_id
                and id >= $19 and id < $20
            offset 0
        ) m
        left join lateral (
            select e.journey_id, s.step_id, s.execution_id, e.teste
            from execution_steps s
            cross join lateral (
                select journey_id, teste from executions
                where
                    organization_id = r.organization_id and env = r.env and journey_id = m.journey_id
                    and id >= s.execution_id and id <= s.execution_id
                order by id
                limit 1
            ) e
            where
                m.journey_id is not null and s.organization_id = r.organization_id and s.message_id >= d.message_id
                and s.message_id <= d.message_id
            order by s.organization_id, s.message_id
            limit 1
        ) x on true
        where
            d.channel = any($17::text[]) and m.status = any($18::text[]) and m.sent_at = d.sent_at and x.teste is not true
        order by d.sent_at desc, d.message_id desc
        limit 1
    ) t on true
)
insert into customer_events (
    organization_id, env, event_id, id, name, contact_id, contact_external_id, occurred_at, value, currency, properties,
    message_id, message_channel, message_sent_at, campaign_id, journey_id, journey_step_id, journey_run_id
)
select
    organization_id, env, event_id, id, name, found_id, found_external_id, occurred_at, value::numeric, currency,
    properties::json, message_id, message_channel, message_sent_at, campaign_id, journey_id, journey_step_id,
    journey_run_id
from attributed
order by organization_id, env, event_id, id
on conflict do nothing
returning
    id, contact_id, contact_external_id, message_id, message_channel, message_sent_at, campaign_id, journey_id,
    journey_step_id, journey_run_id;

-- name: by_contact_id
(
    select 1 as place, id, external_id, id = g.contact_id as hit from contacts
    where organization_id = g.organization_id and env = g.env and id >= g.contact_id
    order by id
    limit 1
)

-- name: by_external_id
(
    select 2 as place, id, external_id, external_id = g.external_id as hit from contacts
    where organization_id = g.organization_id and env = g.env and external_id >= g.external_id
    order by external_id
    limit 1
)

-- name: by_phone
(
    select 3 as place, id, external_id, phone = g.phone as hit from contacts
    where organization_id = g.organization_id and env = g.env and phone >= g.phone
    order by phone
    limit 1
)

-- name: by_email
-- Of several with the address, of whom so many are looked at, it is the last one that changed.
(
    select 4 as place, id, external_id, true as hit
    from (
        select id, external_id, updated_at from contacts
        where organization_id = g.organization_id and env = g.env and email_key between g.email and g.email
        order by email_key
        limit {most}
    ) a
    order by updated_at desc, id desc
    limit 1
)

-- name: known
-- Events by the ids of their callers.
select e.*
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, event_id)
cross join lateral (
    select * from customer_events
    where organization_id = g.organization_id and env = g.env and event_id >= g.event_id
    order by event_id
    limit 1
) e
where e.event_id = g.event_id;

-- name: erase
-- The next events of a contact, after ($4, $5): each loses the external id. Answers the last of them.
with block as materialized (
    select ctid as place, occurred_at, id from customer_events
    where organization_id = $1 and env = $2 and contact_id = $3 and (occurred_at, id) > ($4, $5)
    order by occurred_at, id
    limit $6
),
erased as (
    update customer_events e
    set contact_external_id = null
    from block b
    where e.ctid = b.place and e.contact_external_id is not null
)
select occurred_at, id from block order by occurred_at desc, id desc limit 1;

-- name: purge
-- Of one environment, from before $3.
delete from customer_events
where
    ctid = any(array(
        select ctid from customer_events
        where organization_id = $1 and env = $2 and occurred_at < $3
        order by occurred_at, id
        limit $4
    ));
