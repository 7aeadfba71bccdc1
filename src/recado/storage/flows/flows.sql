-- name: lock_number
select from numbers where organization_id = $1 and env = $2 and id = $3 for no key update

-- name: count_of_number
select count(*) from flows where organization_id = $1 and env = $2 and number_id = $3

-- name: matches
-- $3: a status; $4: the provider's; $5: a category; $6: of which number.
select * from flows
where organization_id = $1 and env = $2
    and ($3::text is null or status = $3) and ($4::text is null or provider_status = $4)
    and ($5::text is null or $5 = any(provider_categories)) and ($6::text is null or number_id = $6)
