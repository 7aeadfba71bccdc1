-- name: begin
-- A key older than its retention is as good as new; so is one whose process died before there was an answer or a row.
insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, locked_until)
values ($1, $2, $3, $4, $5, $6)
on conflict (organization_id, env, key_hash) do update set
    fingerprint = excluded.fingerprint, created_at = excluded.created_at, locked_until = excluded.locked_until,
    message_id = null, status = null, body = null
where idempotency.created_at <= $7 or (idempotency.message_id is null and idempotency.locked_until <= $5)
returning true

-- name: find
select fingerprint, status, body from idempotency where organization_id = $1 and env = $2 and key_hash = $3

-- name: finish
update idempotency set status = $4, body = $5, locked_until = null
where organization_id = $1 and env = $2 and key_hash = $3 and status is null and message_id is null

-- name: release
delete from idempotency
where organization_id = $1 and env = $2 and key_hash = $3 and status is null and message_id is null

-- name: purge
delete from idempotency where ctid = any (array(select ctid from idempotency where created_at <= $1 limit $2))
