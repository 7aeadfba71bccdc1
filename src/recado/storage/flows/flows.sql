-- name: lock_number
select from numbers where organization_id = $1 and env = $2 and id = $3 for no key update

-- name: count_of_number
select count(*) from flows where organization_id = $1 and env = $2 and number_id = $3

-- name: sendable
-- Of a definition that may be long, what messages ask.
select
    id, number_id, status, provider_flow_id,
    jsonb_path_query_array(flow_json, '$.screens[*].id') as screens, flow_json -> 'routing_model' as routes
from flows
where organization_id = $1 and env = $2 and id = $3

-- name: by_provider_id
-- A report names the provider's id; the number only where the provider says it.
select * from flows
where env = $1 and provider_flow_id = $2 and ($3::text is null or number_id = $3)
order by id limit 2

-- name: of_business_account
-- Of the organization that the account belongs to, and of no other that names it.
select f.* from flows f
join numbers n on n.organization_id = f.organization_id and n.id = f.number_id
join business_accounts b
    on b.env = n.env and b.business_account_id = n.business_account_id and b.organization_id = n.organization_id
where f.env = $1 and f.provider_flow_id = $2 and n.business_account_id = $3 and n.deleted_at is null
order by f.id

-- name: matches
-- $3: a status; $4: the provider's; $5: a category; $6: of which number.
select * from flows
where organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or provider_status = $4)
    and ($5::text is null or $5 = any(provider_categories)) and ($6::text is null or number_id = $6)
