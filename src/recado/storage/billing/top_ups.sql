-- name: insert
insert into top_ups (
    organization_id, env, id, status, amount_cents, coins, payment_reference, created_by_id, expires_at, settled_at,
    updated_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning *;

-- name: by_id
select * from top_ups where organization_id = $1 and env = $2 and id = $3;

-- name: by_reference_locked
select * from top_ups where payment_reference = $1 for update;

-- name: page
select * from top_ups where organization_id = $1 and env = $2 order by id desc limit $3 offset $4;

-- name: page_count
select count(*) from (select from top_ups where organization_id = $1 and env = $2 limit 10001) matches;

-- name: settle
update top_ups set status = $4, settled_at = $5, updated_at = $5
where organization_id = $1 and env = $2 and id = $3 and status = any($6::text[])
returning *;

-- name: expire
update top_ups set status = $2, settled_at = $1, updated_at = $1
where status = any($3::text[]) and status = 'pending' and expires_at <= $1;
