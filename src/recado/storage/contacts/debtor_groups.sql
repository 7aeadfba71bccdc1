-- name: of_contacts
select * from debtor_groups
where organization_id = $1 and env = $2 and contact_id = any($3::text[])
order by contact_id, position;

-- name: insert
-- Phones hold no line break.
insert into debtor_groups (
    organization_id, env, id, contact_id, position, company, company_key, phones, amount_cents, status, reference
)
select
    :organization_id, :env, g.id, g.contact_id, g.position, g.company, g.company_key, string_to_array(g.phones, e'\n'),
    g.amount_cents, g.status, g.reference
from unnest(
    :id::text[], :contact_id::text[], :position::smallint[], :company::text[], :company_key::text[], :phones::text[],
    :amount_cents::bigint[], :status::text[], :reference::text[]
) as g (id, contact_id, position, company, company_key, phones, amount_cents, status, reference)
on conflict do nothing
returning id;

-- name: remove
delete from debtor_groups where organization_id = $1 and env = $2 and contact_id = any($3::text[]);

-- name: page
select * from debtor_groups
where
    organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or position($4 in company_key) > 0)
    and ($5::text is null or contact_id = $5)
order by id desc
limit $6 offset $7;

-- name: page_count
select count(*)
from (
    select from debtor_groups
    where
        organization_id = $1 and env = $2
        and ($3::text is null or status = $3) and ($4::text is null or position($4 in company_key) > 0)
        and ($5::text is null or contact_id = $5)
    limit 10001
) matches;

-- name: held
-- Whose the debt groups of these ids are.
select id, contact_id from debtor_groups where organization_id = $1 and env = $2 and id = any($3::text[])
