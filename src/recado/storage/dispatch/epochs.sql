-- An epoch is the ownership of one process, from its start to its end: only the last one may claim (C14.5.6). Leases are
-- by the database's clock, which all hosts see alike.

-- name: opened
-- The last host before an epoch that began a file of begun calls: epoch and moment name the file (C32).
select epoch, taken_at from hosts where opened and epoch < $1 order by epoch desc limit 1;

-- name: note_opened
update hosts set opened = true where epoch = $1;

-- name: take_epoch
-- End the epochs that stand, and begin the next: from now on only this process claims (C14.5). $6: those that are certainly dead
-- already. What is long over is forgotten.
with standing as (
    select
        epoch,
        coalesce(
            free_at, least(lease_until, case when epoch = any($6::bigint[]) then clock_timestamp() end)
        ) as free_at
    from hosts
    where ended_at is null
),
ended as (
    update hosts h set ended_at = clock_timestamp(), free_at = s.free_at from standing s where h.epoch = s.epoch
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
        and (not opened or epoch < (select max(epoch) from hosts where opened))
)
insert into hosts (epoch, host, pid, sessions, backend, taken_at, lease_until)
select epoch, $2, $3, $4, pg_backend_pid(), $1, clock_timestamp() + make_interval(secs => $5)
from next
returning epoch;

-- name: current_epoch
select epoch from shards where shard = 0;
