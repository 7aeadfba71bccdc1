-- name: insert
insert into organizations (
    id, name, status, time_zone, country, quiet_start, quiet_end, require_granted_for_marketing,
    opt_out_keywords, opt_in_keywords, opt_out_reply, dedicated_sender, revision, updated_at
) values ($1, $2, 'active', $3, $4, null, null, false, '{}', '{}', null, null, 1, $5)
returning *

-- name: by_id
select * from organizations where id = $1

-- name: by_id_locked
select * from organizations where id = $1 for update

-- name: all
select * from organizations order by id

-- name: save
update organizations set
    name = $3, status = $4, time_zone = $5, country = $6, quiet_start = $7, quiet_end = $8,
    require_granted_for_marketing = $9, opt_out_keywords = $10, opt_in_keywords = $11, opt_out_reply = $12,
    dedicated_sender = $13, held_ms = $14, held_since = $15, revision = $16, updated_at = $17,
    hide_phone_hash = $18
where id = $1 and revision = $2
returning *
