-- name: matches
-- $3: a status; $4: a part of the name. What a list does not show is not read.
select
    organization_id, env, id, name, subject, ''::text as html, null::text as text, null::text as mjml, variables, placeholders,
    status, version, created_by_id, revision, updated_at
from email_templates
where
    organization_id = $1 and env = $2 and ($3::text is null or status = $3)
    and ($4::text is null or strpos(name_key, $4) > 0);

-- name: named
select id from email_templates where organization_id = $1 and env = $2 and name_key = $3 and status = 'active';

-- name: count_of_environment
select count(*) from email_templates where organization_id = $1 and env = $2 and status = 'active';
