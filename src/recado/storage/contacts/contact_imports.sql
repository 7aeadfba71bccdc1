-- name: insert_block
insert into contact_import_blocks (organization_id, import_id, first_row, rows, sealed) values ($1, $2, $3, $4, true)

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
    processed = processed + :processed, created = created + :created, updated = updated + :updated,
    unchanged = unchanged + :unchanged, failed = failed + :failed, consent_ignored = consent_ignored + :consent_ignored,
    errors = coalesce(:errors, errors), attempts = 0,
    status = case when processed + :processed >= total and status = 'processing' then 'completed' else status end,
    finished_at = case when processed + :processed >= total then :now else finished_at end
where organization_id = :organization_id and env = :env and id = :id
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
