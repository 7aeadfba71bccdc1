-- name: lock_number
select from numbers where organization_id = $1 and env = $2 and id = $3 for no key update

-- name: count_of_number
select count(*) from templates where organization_id = $1 and env = $2 and number_id = $3 and deleted_at is null

-- name: by_names_locked
-- $4, $5: names and their languages.
select t.*
from unnest($4::text[], $5::text[]) as g (name, language)
join templates t
    on
        t.organization_id = $1 and t.number_id = $3 and t.name = g.name and t.language = g.language
        and t.env = $2 and t.deleted_at is null
order by t.id
for update of t

-- name: by_provider_id
-- A report names the provider's id; the number only where the provider says it.
select * from templates
where env = $1 and provider_template_id = $2 and ($3::text is null or number_id = $3) and deleted_at is null
order by id limit 2

-- name: of_business_account
-- Of the organization that the account belongs to, and of no other that names it.
select t.* from templates t
join numbers n on n.organization_id = t.organization_id and n.id = t.number_id
join business_accounts b
    on b.env = n.env and b.business_account_id = n.business_account_id and b.organization_id = n.organization_id
where t.env = $1 and t.provider_template_id = $2 and n.business_account_id = $3
    and t.deleted_at is null and n.deleted_at is null
order by t.id

-- name: submitted
-- Whose submission is under way, and whose id at the provider may therefore not be known.
select t.* from numbers n
join templates t on t.organization_id = n.organization_id and t.number_id = n.id
where t.env = $1 and t.name = $2 and t.language = $3 and t.status = 'submitted' and t.deleted_at is null
    and (
        $4::text is null
        or n.business_account_id = $4 and exists (
            select from business_accounts b
            where b.env = n.env and b.business_account_id = $4 and b.organization_id = n.organization_id
        )
    )
    and ($5::text is null or n.id = $5) and n.deleted_at is null
order by t.id

-- name: matches
-- $3: a status; $4: a category; $5: a language; $6: of which number.
select * from templates
where organization_id = $1 and env = $2 and deleted_at is null
    and ($3::text is null or status = $3) and ($4::text is null or category = $4)
    and ($5::text is null or language = $5) and ($6::text is null or number_id = $6)

-- name: claim_due
-- Anyone who takes a row sets its next turn, so that a crash in the middle of a step only delays it.
with due as (
    select organization_id, id from templates
    where env = $1 and next_step_at <= $2 and deleted_at is null
    order by next_step_at limit $4 for update skip locked
)
update templates t set next_step_at = $3 from due
where t.organization_id = due.organization_id and t.id = due.id
returning t.*
