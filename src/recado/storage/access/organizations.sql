-- name: insert
insert into organizations (
    id, name, status, time_zone, country, quiet_start, quiet_end, require_granted_for_marketing,
    opt_out_keywords, opt_in_keywords, opt_out_reply, dedicated_sender, revision, updated_at
) values ($1, $2, 'active', $3, $4, null, null, false, '{}', '{}', null, null, 1, $5)
returning *

-- name: all
select * from organizations order by id
