-- name: find
-- Who is known with these recipients, each named by its contact or by its phone: the contact, and whether the registry has
-- the phone as it is spelled here. One look-up a row, whatever the planner thinks of the tables' sizes: `offset 0`, and the order that only the
-- right index has (see contacts.sql).
select
    g.n, c.id, coalesce(c.phone, g.phone) as phone, c.email, c.chatapp_user_id, c.opt_in_status,
    exists (
        select from opt_outs o
        where
            o.organization_id = g.organization_id and o.env = g.env and o.kind = 'phone'
            and o.hash = sha256(convert_to(g.organization_id || ':' || coalesce(c.phone, g.phone), 'UTF8'))
        offset 0
    ) as registered
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::text[]) as g (n, organization_id, env, contact_id, phone)
left join lateral (
    (
        select id, phone, email, chatapp_user_id, opt_in_status from contacts
        where g.contact_id is not null and organization_id = g.organization_id and env = g.env and id >= g.contact_id
        order by id
        limit 1
    )
    union all
    (
        select id, phone, email, chatapp_user_id, opt_in_status from contacts
        where g.contact_id is null and organization_id = g.organization_id and env = g.env and phone >= g.phone
        order by phone
        limit 1
    )
) c on c.id = g.contact_id or (g.contact_id is null and c.phone = g.phone);

-- name: find_by_email
-- The same of addresses, each of which several contacts may have: the oldest one of the first thousand that the index has, and what
-- all of them consented to, a refusal before a consent. However many have it, as the statement is shared by all who send.
select
    g.n, c.id,
    case when c.denied then 'denied' when c.granted then 'granted' when c.id is not null then 'unknown' end as opt_in_status,
    exists (
        select from opt_outs o
        where
            o.organization_id = g.organization_id and o.env = g.env and o.kind = 'email'
            and o.hash = sha256(convert_to(g.organization_id || ':' || g.email, 'UTF8'))
        offset 0
    ) as registered
from unnest($1::integer[], $2::text[], $3::text[], $4::text[]) as g (n, organization_id, env, email)
cross join lateral (
    select
        (
            select min(k.id)
            from (
                select id from contacts
                where organization_id = g.organization_id and env = g.env and email_key between g.email and g.email
                order by email_key
                limit 1000
            ) k
        ) as id,
        {denied} as denied,
        {granted} as granted
    offset 0
) c;
