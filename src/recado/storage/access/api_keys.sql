-- name: insert_token
insert into api_key_tokens (token_hash, organization_id, key_id, valid_until) values ($1, $2, $3, null)

-- name: by_token_hash
select k.*, t.valid_until as token_valid_until, o.status = 'suspended' as organization_suspended,
    o.moving as organization_moving, o.hide_phone_hash
from api_key_tokens t
join api_keys k on k.organization_id = t.organization_id and k.id = t.key_id
join organizations o on o.id = t.organization_id
where t.token_hash = $1

-- name: active_count
select count(*) from api_keys
where organization_id = $1 and env = $2 and revoked_at is null and (expires_at is null or expires_at > $3)

-- name: rotate
update api_keys set prefix = $4, rotated_at = $5, previous_valid_until = $6
where organization_id = $1 and env = $2 and id = $3 and revoked_at is null
returning *

-- name: replace_token
-- None where a later rotation has ended it.
update api_key_tokens set token_hash = $4
where organization_id = $1 and key_id = $2 and token_hash = $3 and valid_until is null
returning true

-- name: save_prefix
update api_keys set prefix = $4
where organization_id = $1 and env = $2 and id = $3 and revoked_at is null
returning *

-- name: end_previous_tokens
update api_key_tokens set valid_until = least(valid_until, $3)
where organization_id = $1 and key_id = $2 and valid_until is not null

-- name: end_current_token
update api_key_tokens set valid_until = $3
where organization_id = $1 and key_id = $2 and valid_until is null

-- name: revoke
update api_keys set revoked_at = $4
where organization_id = $1 and env = $2 and id = $3 and revoked_at is null
returning *

-- name: touch
-- As of sessions: in the order of their ids, for every process writes those that it has seen.
with locked as materialized (
    select k.organization_id, k.id, used.at
    from unnest($1::text[], $2::text[], $3::timestamptz[]) as used (organization_id, id, at)
    join api_keys k on k.organization_id = used.organization_id and k.id = used.id
    where k.last_used_at is null or k.last_used_at < used.at
    order by k.id
    for no key update of k
)
update api_keys k set last_used_at = greatest(k.last_used_at, l.at)
from locked l
where k.organization_id = l.organization_id and k.id = l.id
