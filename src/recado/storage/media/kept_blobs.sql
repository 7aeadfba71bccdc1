-- name: note
insert into blobs (organization_id, env, key, delete_at) values ($1, $2, $3, $4);

-- name: abandon
-- To be deleted whatever the clock says.
update blobs set delete_at = $5 where organization_id = $1 and env = $2 and key = $3 and delete_at = $4;

-- name: keep
update blobs set delete_at = $4 where organization_id = $1 and env = $2 and key = $3;

-- name: due
select organization_id, env, key, delete_at from blobs where delete_at <= $1 order by delete_at limit $2;

-- name: forget
delete from blobs where organization_id = $1 and env = $2 and key = $3 and delete_at <= $4;
