-- What belongs to an organization that is moved, in a schema of its own ({held}) between two databases: whoever serves the first
-- one does not see it any more, and nobody serves it yet.

-- name: try_lock
select pg_try_advisory_lock(hashtextextended('recado move ' || $1, 0));

-- name: lock
select pg_advisory_xact_lock(hashtextextended('recado put ' || $1, 0));

-- name: is_begun
select to_regclass($1) is not null;

-- name: begin_schema
create schema {held};

-- name: begin_table
create table {held}.cell_move (
    organization_id text primary key,
    to_cell text not null,
    status text not null, -- of the organization before
    held_since timestamptz, -- likewise
    begun_at timestamptz not null,
    held_at timestamptz -- since when everything is here
);

-- name: begin_row
insert into {held}.cell_move (organization_id, to_cell, status, held_since, begun_at)
select id, $2, status, held_since, clock_timestamp() from organizations where id = $1;

-- name: stop
-- Its queues stand still, and no caller is answered.
update organizations
set status = 'suspended', moving = true, held_since = coalesce(held_since, clock_timestamp()), revision = revision + 1, updated_at = clock_timestamp()
where id = $1;

-- name: move
select organization_id, to_cell, status, held_since, begun_at, held_at from {held}.cell_move;

-- name: move_for_share
select held_at from {held}.cell_move for share;

-- name: move_for_update
select held_at from {held}.cell_move for update nowait;

-- name: is_stopped
select moving from organizations where id = $1 for update;

-- name: in_hand
-- What is under way, and whose end is not written yet, in tables of {place}.
select
    (select count(*) from {place}dispatch
     where organization_id = $1 and claimed_epoch is not null and reason is distinct from 'uncertain')
    + (select count(*) from {place}push_blocks where organization_id = $1 and claimed_at is not null and not over)
    + (select count(*) from {place}push_dispatches where organization_id = $1 and claimed_at is not null)
    + (select count(*) from {place}step_calls where organization_id = $1 and claimed_at is not null);

-- name: begin_held
create table if not exists {held}.{table} as select {columns} from {table} limit 0;

-- name: take
with taken as (
    delete from {table} where {whose} returning {columns}
)
insert into {held}.{table} ({columns}) select {columns} from taken;

-- name: clear_held
delete from {held}.{table};

-- name: copy_staying
insert into {held}.{table} ({columns}) select {columns} from {table} where {whose};

-- name: drop_made
-- What the triggers of this transaction made: it stands in what is moved already.
delete from {table} where {whose} and xmin = pg_current_xact_id()::xid;

-- name: forget_epochs
-- Epochs are of one database: of a call whose outcome nobody knows no owner waits for an answer.
update {held}.dispatch set claimed_epoch = 0 where claimed_epoch is not null;

-- name: note_held
update {held}.cell_move set held_at = clock_timestamp();

-- name: writers
-- The transactions of this database that have written something.
select coalesce(array_agg(distinct l.virtualtransaction), '{}')
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
where
    l.locktype = 'transactionid' and l.granted and l.mode = 'ExclusiveLock'
    and a.datname = current_database() and l.pid <> pg_backend_pid();

-- name: still_write
select exists (
    select from pg_locks
    where locktype = 'transactionid' and granted and mode = 'ExclusiveLock' and virtualtransaction = any($1::text[])
);

-- name: held_rows
select {columns} from {held}.{table} {ordered};

-- name: put_back
insert into {table} ({columns}) select {columns} from {held}.{table} {ordered};

-- name: release
-- As it was; the time that its queues stood still is not counted (C14.5).
update organizations
set
    status = $2, held_since = $3, moving = false, revision = revision + 1, updated_at = clock_timestamp(),
    held_ms = held_ms + case
        when $2 = 'active' then greatest(0, extract(epoch from clock_timestamp() - held_since) * 1000)::bigint else 0
    end
where id = $1;

-- name: forget
delete from {table} where {whose};

-- name: count
select count(*) from {table} where {whose};

-- name: late_rows
select {columns} from {table} where {whose};

-- name: begin_late
create temporary table late_{table} on commit drop as select {columns} from {table} limit 0;

-- name: follow
insert into {table} ({columns}) select {columns} from late_{table} on conflict do nothing;

-- name: end_schema
drop schema {held} cascade;

-- name: is_here
select exists (select from organizations where id = $1);

-- name: checksum
select count(*) as rows, coalesce(sum(hashtextextended(row({columns})::text, 0)::numeric), 0)::text as checksum
from {table} where {whose};

-- name: unequal_wallets
-- Those whose balance is not the sum of their entries.
select count(*)
from wallets w
where
    w.organization_id = $1
    and w.balance_coins <> w.verified_coins + (
        select coalesce(sum(l.coins), 0)
        from ledger l
        where l.organization_id = w.organization_id and l.env = w.env and l.position > w.verified_position
    );

-- name: message_ids
select min(id) as oldest, max(id) as newest from {held}.messages;

-- name: shown
select clock_timestamp();

-- name: stood_still
select extract(epoch from clock_timestamp() - $1::timestamptz)::float8;

-- name: versions
select name || ' ' || encode(checksum, 'hex') from schema_migrations order by 1;

-- name: stored_files
-- Whether it has binaries in the storage of its cell.
select
    exists (select from media where organization_id = $1 and blob_key is not null)
    or exists (select from inbound_media where organization_id = $1 and blob_key is not null)
    or exists (select from blobs where organization_id = $1);

-- name: sealed_sample
-- Something that is encrypted, if there is any.
select organization_id, id, vapid_cipher from push_apps order by organization_id = $1 desc limit 1;
