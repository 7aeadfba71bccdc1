-- Entries (C9.7): the claims of a chain of versions on its contacts, and the executions that they begin.

-- name: lock
-- The claims that there are, in order: nobody else enters these contacts until the commit.
select g.n
from (
    select *
    from unnest(unpack($1), unpack($2), unpack($3), unpack($4)) with ordinality
        as g (organization_id, env, chain_id, contact_id, n)
    order by organization_id, env, chain_id, contact_id
    offset 0
) g
cross join lateral (
    select from chain_entries
    where
        organization_id = g.organization_id and env = g.env and chain_id = g.chain_id and contact_id = g.contact_id
    limit 1
    for update
) e;

-- name: histories
-- Of contacts that exist: what they consented to, when they entered the chain last, by which execution, and whether that is under way
-- ($5).
select g.n, c.opt_in_status, e.entered_at, e.execution_id, x.status is not null as active
from unnest(unpack($1), unpack($2), unpack($3), unpack($4)) with ordinality
    as g (organization_id, env, chain_id, contact_id, n)
cross join lateral (
    select opt_in_status from contacts
    where organization_id = g.organization_id and env = g.env and id >= g.contact_id and id <= g.contact_id
    order by id
    limit 1
) c
left join lateral (
    select entered_at, journey_id, execution_id from chain_entries
    where
        organization_id = g.organization_id and env = g.env and chain_id = g.chain_id and contact_id = g.contact_id
    limit 1
) e on true
left join lateral (
    select status from executions
    where
        organization_id = g.organization_id and env = g.env and journey_id = e.journey_id
        and id >= e.execution_id and id <= e.execution_id and status = $5
    order by id
    limit 1
) x on true;

-- name: enter
-- Claims of those who never entered the chain; who entered it at the same moment by another commit is left out.
insert into chain_entries (organization_id, env, chain_id, contact_id, journey_id, execution_id, entered_at)
select organization_id, env, chain_id, contact_id, journey_id, execution_id, moment(entered_at)
from unnest(
    unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6), unpack($7)::bigint[]
) as g (organization_id, env, chain_id, contact_id, journey_id, execution_id, entered_at)
on conflict do nothing
returning execution_id;

-- name: enter_again
-- Those whose claims this transaction has locked.
update chain_entries e
set journey_id = g.journey_id, execution_id = g.execution_id, entered_at = moment(g.entered_at)
from unnest(
    unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), unpack($6), unpack($7)::bigint[]
) as g (organization_id, env, chain_id, contact_id, journey_id, execution_id, entered_at)
where
    e.organization_id = g.organization_id and e.env = g.env and e.chain_id = g.chain_id and e.contact_id = g.contact_id;

-- name: contacts_of
-- The contacts with one of these keys: of organization and environment $1 and $2, $3 the id, $4 the external id, $5 the phone, $6 the
-- e-mail address (`email_key`), in this order. Of several with the address, of whom $7 are looked at, it is the last one that changed.
select g.place, c.id
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
    as g (organization_id, env, contact_id, external_id, phone, email, place)
cross join lateral (
    select id
    from (
        (
            select 1 as rank, id from contacts
            where organization_id = g.organization_id and env = g.env and id >= g.contact_id and id <= g.contact_id
            order by id
            limit 1
        )
        union all
        (
            select 2, id from contacts
            where
                organization_id = g.organization_id and env = g.env
                and external_id >= g.external_id and external_id <= g.external_id
            order by external_id
            limit 1
        )
        union all
        (
            select 3, id from contacts
            where organization_id = g.organization_id and env = g.env and phone >= g.phone and phone <= g.phone
            order by phone
            limit 1
        )
        union all
        (
            select 4, id
            from (
                select id, updated_at from contacts
                where organization_id = g.organization_id and env = g.env and email_key between g.email and g.email
                order by email_key
                limit $7
            ) addressed
            order by updated_at desc, id desc
            limit 1
        )
    ) known
    order by rank
    limit 1
) c;
