-- name: insert
insert into audit (organization_id, id, env, actor_type, actor_id, action, target_id, ip, request_id, details)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict do nothing;

-- name: page
select * from audit
where organization_id = $1 and (env is null or env = $2)
    and id >= $3 and id < $4
    and ($5::text is null or action = $5) and ($6::text is null or actor_id = $6) and ($7::text is null or target_id = $7)
order by id desc limit $8
