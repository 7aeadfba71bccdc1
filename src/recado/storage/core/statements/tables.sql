-- What is done to any plain record; tables.py fills in its names. A record that needs another statement has it, under the same
-- name, in the file of its aggregate.

-- name: by_id
select * from {table} where {key}

-- name: by_id_locked
select * from {table} where {key} for update

-- name: insert
insert into {table} ({columns}) values ({values})
on conflict do nothing
returning *

-- name: insert_many
-- $1: the records as JSON, by column.
insert into {table} ({columns})
select {columns} from jsonb_populate_recordset(null::{table}, $1::text::jsonb)
on conflict do nothing
returning *

-- name: save_many
-- $1: the records as they become, as JSON, by column.
update {table} t set {becomes}
from jsonb_populate_recordset(null::{table}, $1::text::jsonb) g
where {same}
returning t.*

-- name: save
update {table} set {changes} where {version} returning *

-- name: delete
delete from {table} where {key}

-- name: named
-- Who has what only one may have.
select id from {table} where {unique}

-- name: count_of_environment
select count(*) from {table} where organization_id = $1 and env = $2

-- name: matches
select * from {table} where {owner}

-- name: page
select * from (
    {matches}
) r
where {before}::text is null or id < {before}
order by id desc limit {limit} offset {skip}

-- name: page_count
select count(*) from (
    select from (
        {matches}
    ) r
    limit 10001
) counted

-- name: lock_organization
-- Who adds a record of which there may be only so many, or gives it a name, waits for anyone else who does.
select from organizations where id = $1 for no key update
