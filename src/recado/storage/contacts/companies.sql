-- name: count_one
-- No row when the environment holds as many as it may. Anyone who adds one waits here for anyone who is adding another.
insert into company_counts as c (organization_id, env, companies) values ($1, $2, 1)
on conflict (organization_id, env) do update set companies = c.companies + 1 where c.companies < $3
returning companies

-- name: uncount_one
-- Before the company is locked: anyone who adds one holds this row, and may wait for a company with the same CNPJ.
update company_counts set companies = companies - 1 where organization_id = $1 and env = $2

-- name: existing
-- Anyone who refers to a company holds it: it is not deleted before the reference is written, which the deletion then clears.
select id from companies where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share

-- name: page
select * from companies
where organization_id = $1 and env = $2
    and ($3::text is null or cnpj = $3)
    and ($4::text is null or strpos(name_key, $4) > 0)
    and ($5::text is null or responsible_id = $5)
    and ($6::text is null or (name_key, id) > ($6, $7))
order by name_key, id limit $8 offset $9

-- name: page_count
select count(*) from (
    select from companies
    where organization_id = $1 and env = $2
        and ($3::text is null or cnpj = $3)
        and ($4::text is null or strpos(name_key, $4) > 0)
        and ($5::text is null or responsible_id = $5)
    limit 10001
) matches

-- name: counts
-- One look along the index of contacts for each company of a page, and one for its main contact.
select
    c.id, counted.contacts, counted.last_interaction_at,
    exists (
        select from contacts where organization_id = $1 and env = $2 and id = c.main_contact_id
    ) as has_main_contact
from unnest($3::text[], $4::text[]) as c (id, main_contact_id)
cross join lateral (
    select count(*) as contacts, max(last_interaction_at) as last_interaction_at
    from contacts where organization_id = $1 and env = $2 and company_id = c.id
) counted

-- name: adopt
-- The main contact joins the company, unless it has one.
update contacts set company_id = $4, revision = revision + 1, updated_at = $5
where organization_id = $1 and env = $2 and id = $3 and company_id is null

-- name: contact_exists
-- Not held: contacts are locked after companies, and those after the count.
select true from contacts where organization_id = $1 and env = $2 and id = $3

-- name: has_more_contacts
-- Whether more than $4 contacts belong to the company.
select exists (select from contacts where organization_id = $1 and env = $2 and company_id = $3 offset $4)

-- name: release_contacts
-- The next contacts of a company, in the order of their ids, which only the index of companies' contacts has. Up to the last
-- one that is held all are held: joined with those, without statistics, each was sought among all of the environment.
with held as materialized (
    select id from contacts
    where organization_id = $1 and env = $2 and company_id >= $3 and company_id <= $3
    order by company_id, id limit $5 for update
)
update contacts set company_id = null, company_role = null, revision = revision + 1, updated_at = $4
where
    organization_id = $1 and env = $2 and company_id >= $3 and company_id <= $3 and id <= (select max(id) from held)
