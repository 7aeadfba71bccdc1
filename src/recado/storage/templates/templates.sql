-- name: insert
insert into templates (
    organization_id, id, env, number_id, name, language, category, status, components, header_example_url,
    provider_template_id, version, approved_version, rejection_reason, revision, updated_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
on conflict do nothing
returning *

-- name: lock_number
select from numbers where organization_id = $1 and env = $2 and id = $3 for no key update

-- name: count_of_number
select count(*) from templates where organization_id = $1 and env = $2 and number_id = $3 and deleted_at is null

-- name: by_id
select * from templates where organization_id = $1 and env = $2 and id = $3 and deleted_at is null

-- name: by_id_locked
select * from templates where organization_id = $1 and env = $2 and id = $3 and deleted_at is null for update

-- name: named
select id from templates
where organization_id = $1 and env = $2 and number_id = $3 and name = $4 and language = $5 and deleted_at is null

-- name: by_name_locked
select * from templates
where organization_id = $1 and env = $2 and number_id = $3 and name = $4 and language = $5 and deleted_at is null
for update

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

-- name: page
select * from templates
where organization_id = $1 and env = $2 and deleted_at is null
    and ($3::text is null or status = $3) and ($4::text is null or category = $4)
    and ($5::text is null or language = $5) and ($6::text is null or number_id = $6)
    and ($7::text is null or id < $7)
order by id desc limit $8 offset $9

-- name: page_count
select count(*) from (
    select from templates
    where organization_id = $1 and env = $2 and deleted_at is null
        and ($3::text is null or status = $3) and ($4::text is null or category = $4)
        and ($5::text is null or language = $5) and ($6::text is null or number_id = $6)
    limit 10001
) matches

-- name: save
update templates set
    category = $5, status = $6, components = $7, header_example_url = $8, provider_template_id = $9, version = $10,
    approved_version = $11, rejection_reason = $12, submit_attempts = $13, next_step_at = $14, verdict = $15,
    deleted_at = $16, revision = $17, updated_at = $18, reported_at = $19
where organization_id = $1 and env = $2 and id = $3 and revision = $4 and deleted_at is null
returning *

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
