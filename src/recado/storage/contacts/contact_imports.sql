-- name: insert
insert into contact_imports (
    organization_id, env, id, status, format, options, columns, total, actor_type, actor_id, actor_ip, actor_agent, finished_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: insert_block
insert into contact_import_blocks (organization_id, import_id, first_row, rows, sealed) values ($1, $2, $3, $4, true)

-- name: by_id
select * from contact_imports where organization_id = $1 and env = $2 and id = $3

-- name: open
-- Of each organization the one whose turn it is: the oldest that had none yet ($2), or else the oldest. Without those of $1.
select organization_id, env, id
from (
    select distinct on (organization_id) organization_id, env, id
    from contact_imports
    where status = 'processing' and id <> all($1::text[])
    order by organization_id, id = any($2::text[]), id
) o
order by id

-- name: next_blocks
-- Bodies are read one by one: a block of rows with pictures is large.
select first_row from contact_import_blocks
where organization_id = $1 and import_id = $2 order by first_row limit $3

-- name: block
select rows, sealed from contact_import_blocks where organization_id = $1 and import_id = $2 and first_row = $3

-- name: blocks_under_other_keys
-- Blocks that another key than the one of this beginning sealed, or none.
select count(*) from contact_import_blocks where not sealed or substring(rows for octet_length($1::bytea)) <> $1

-- name: take_block
-- In the transaction that writes its rows: anyone who comes second waits, and finds it gone.
delete from contact_import_blocks where organization_id = $1 and import_id = $2 and first_row = $3 returning true

-- name: lock_errors
select errors from contact_imports where organization_id = $1 and env = $2 and id = $3 for update

-- name: advance
-- The rows of a block are written. Two blocks may be on their way at once: the one that commits last completes the import.
update contact_imports set
    processed = processed + $4, created = created + $5, updated = updated + $6, unchanged = unchanged + $7,
    failed = failed + $8, consent_ignored = consent_ignored + $9, errors = coalesce($10, errors), attempts = 0,
    status = case when processed + $4 >= total and status = 'processing' then 'completed' else status end,
    finished_at = case when processed + $4 >= total then $11 else finished_at end
where organization_id = $1 and env = $2 and id = $3
returning status

-- name: failed_once
update contact_imports set attempts = attempts + 1
where organization_id = $1 and env = $2 and id = $3 and status = 'processing'
returning attempts

-- name: give_up
with given_up as (
    update contact_imports set status = 'failed', finished_at = $4
    where organization_id = $1 and env = $2 and id = $3 and status = 'processing'
    returning organization_id, id
)
delete from contact_import_blocks b using given_up g where b.organization_id = g.organization_id and b.import_id = g.id

-- name: purge
with old as materialized (
    select organization_id, env, id from contact_imports where id < $1 and status <> 'processing' order by id limit $2
)
delete from contact_imports i using old o
where i.organization_id = o.organization_id and i.env = o.env and i.id = o.id

-- name: anyone_opted_out
select exists (select from opt_outs where organization_id = $1 and env = $2)

-- name: opted_out
-- The places of new contacts whose phone, in any spelling, or address is in the registry.
select g.place::integer
from unnest(unpack($3), unpack($4), unpack($5)) with ordinality as g (phone_hash, email_hash, spellings, place)
where
    exists (
        select from opt_outs
        where organization_id = $1 and env = $2 and kind = 'phone' and hash = decode(g.phone_hash, 'hex')
    )
    or exists (
        select from opt_outs
        where organization_id = $1 and env = $2 and kind = 'email' and hash = decode(g.email_hash, 'hex')
    )
    or (opted_out_as($1, $2, g.spellings)) is true

-- name: save_contacts
-- Many changed contacts; anyone who was changed since it was read is left out. Answers the ids of those that were written.
-- Each is found along the one index that has the order that is asked for, and touched by its place: without statistics every
-- index of the environment is as good to the planner, and it would read all of its contacts for each.
update contacts c set
    name = g.name, email = g.email, email_key = g.email_key, avatar_url = g.avatar_url, cpf_cipher = g.cpf_cipher,
    cnpj_cipher = g.cnpj_cipher, birth_date_cipher = g.birth_date_cipher, cpf_index = decode(g.cpf_index, 'hex'),
    cnpj_index = decode(g.cnpj_index, 'hex'), attributes = g.attributes::jsonb, tags = g.tags::text[],
    tag_keys = g.tag_keys::text[], external_id = g.external_id, external_ids = g.external_ids::jsonb,
    company_id = g.company_id, company_role = g.company_role, opt_in_status = g.opt_in_status,
    opt_in_source = g.opt_in_source, opt_in_at = g.opt_in_at, opt_in_ip = g.opt_in_ip,
    opt_in_user_agent = g.opt_in_user_agent, opt_in_revoked_at = g.opt_in_revoked_at,
    opt_in_revoked_reason = g.opt_in_revoked_reason, search = array_to_tsvector(string_to_array(g.words, ' ')),
    revision = c.revision + 1, updated_at = $3
from (
    select r.place, g.*
    from unnest(
        $4::text[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
        $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[],
        $22::text[], $23::text[], $24::timestamptz[], $25::text[], $26::text[], $27::timestamptz[], $28::text[], $29::text[]
    ) as g (
        id, revision, name, email, email_key, avatar_url, cpf_cipher, cnpj_cipher, birth_date_cipher, cpf_index, cnpj_index,
        attributes, tags, tag_keys, external_id, external_ids, company_id, company_role, opt_in_status, opt_in_source,
        opt_in_at, opt_in_ip, opt_in_user_agent, opt_in_revoked_at, opt_in_revoked_reason, words
    )
    cross join lateral (
        select ctid as place, id, revision from contacts
        where organization_id = $1 and env = $2 and id >= g.id
        order by id
        limit 1
    ) r
    where r.id = g.id and r.revision = g.revision
) g
where c.ctid = g.place
returning c.id

-- name: hold
-- Those of these contacts that are there; none of them goes away meanwhile.
select id from contacts where organization_id = $1 and env = $2 and id = any($3::text[]) order by id for key share

-- name: hold_unchanged
-- Those of these contacts that still have these revisions; none of them changes meanwhile. One by one along the key, in the
-- order of their ids: so everybody locks contacts who changes several.
select c.id
from (select * from unnest($3::text[], $4::integer[]) as g (id, revision) order by id offset 0) g
cross join lateral (
    select id from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id and revision = g.revision
    order by id
    limit 1
    for no key update
) c

-- name: groups_held
-- Whose the debt groups of these ids are.
select id, contact_id from debtor_groups where organization_id = $1 and env = $2 and id = any($3::text[])

-- name: remove_groups
delete from debtor_groups where organization_id = $1 and env = $2 and contact_id = any($3::text[])
