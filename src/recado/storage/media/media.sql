-- name: at_sender
update media set provider_ids = provider_ids || jsonb_build_object($4::text, $5::text)
where organization_id = $1 and env = $2 and id = $3;

-- name: purge
delete from media
where (organization_id, env, id) in (select organization_id, env, id from media where expires_at <= $1 limit $2);
