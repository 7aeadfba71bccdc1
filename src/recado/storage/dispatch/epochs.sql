-- An epoch is the ownership of one process, from its start to its end: only the owner's and those beside it may claim
-- (C14.5.6, C14.5.7). Leases are by the database's clock, which all hosts see alike.

-- name: opened
-- The last owner before an epoch that began a file of begun calls: epoch and moment name the file (C32).
select epoch, taken_at from hosts where opened and beside is null and epoch < $1 order by epoch desc limit 1;

-- name: opened_beside
-- Those beside owners that are dead and began such files, of which what they had in hand is not sorted out yet.
select epoch, taken_at from hosts where opened and beside is not null and ended_at is not null order by epoch;

-- name: note_opened
update hosts set opened = true where epoch = $1;

-- name: note_sorted_out
update hosts set opened = false where epoch = $1;

-- name: standing
-- Epochs that are not over, held for whoever begins the next.
select epoch, lease_until, free_at from hosts where ended_at is null order by epoch for update;

-- name: take_epoch
-- End the epochs that stand, and begin the next: from now on only this process claims (C14.5). $6, $7: epochs, and when they begin
-- no call any more. What is long over is forgotten.
with ended as (
    update hosts h set ended_at = clock_timestamp(), free_at = s.closed_at
    from unnest($6::bigint[], $7::timestamptz[]) as s (epoch, closed_at)
    where h.epoch = s.epoch
),
next as materialized (
    select 1 + greatest((select max(epoch) from shards), coalesce((select max(epoch) from hosts), 0)) as epoch
),
moved as (
    update shards set epoch = (select epoch from next)
),
forgotten as (
    delete from hosts
    where
        ended_at < clock_timestamp() - interval '1 hour'
        and (not opened or beside is null and epoch < (select max(epoch) from hosts where opened and beside is null))
)
insert into hosts (epoch, host, pid, sessions, backend, taken_at, lease_until)
select epoch, $2, $3, $4, pg_backend_pid(), $1, clock_timestamp() + make_interval(secs => $5)
from next
returning epoch;

-- name: join_epoch
-- Begin an epoch beside that of the owner ($1), where that one still is: of another of its processes ($2).
insert into hosts (epoch, beside, host, pid, sessions, backend, taken_at, lease_until)
select
    1 + greatest((select max(epoch) from shards), (select max(epoch) from hosts)),
    o.epoch, o.host, $2, o.sessions, o.backend, $3, o.lease_until
from hosts o
where o.epoch = $1 and o.ended_at is null
returning epoch;

-- name: give_shards
-- To an epoch ($2) beside the owner's ($1). The first shard stays its own.
update shards set epoch = $2
where
    shard = any($3::smallint[]) and shard <> 0
    and exists (select from hosts where epoch = $2 and beside = $1 and ended_at is null);

-- name: end_beside
-- The process of this epoch ($2) is certainly dead: its shards are the owner's ($1).
with ended as (
    update hosts set ended_at = clock_timestamp(), free_at = coalesce(free_at, clock_timestamp())
    where epoch = $2 and beside = $1 and ended_at is null
)
update shards set epoch = $1 where epoch = $2;

-- name: current_epoch
select epoch from shards where shard = 0;

-- name: lives
select exists (select from hosts where epoch = $1 and ended_at is null);
