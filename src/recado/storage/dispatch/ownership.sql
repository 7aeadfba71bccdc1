-- Whoever serves a database holds a lease, which it renews each second: a row of `hosts`, by the database's clock (C14.5.6).
-- Beside it, each holds an advisory lock in common with others, on a session that does nothing else: the server lets it go when
-- the process is gone. By that session it is known whether a process is dead, and which sessions are its own.

-- name: try_live
-- Fails where a service of an earlier version runs, which has the lock alone.
select pg_try_advisory_lock_shared($1, $2);

-- name: owner
-- The last one, unless it stopped in order. Others may have epochs beside it: the owner's is that of the first shard.
select host, pid, taken_at as since
from hosts
where epoch = (select epoch from shards where shard = 0) and free_at is null;

-- name: living
-- The last one, where the session that it renews its lease on has the lock: whoever is about to take the place has it too.
select h.host, h.pid, h.taken_at as since
from hosts h
where h.epoch = (select epoch from shards where shard = 0) and h.free_at is null and h.backend in ({holders});

-- name: is_held
select exists ({holders});

-- name: is_held_alone
-- By a service of an earlier version, which has no lease.
select exists ({holders} and l.mode = 'ExclusiveLock');

-- name: one_takes
-- One takes at a time.
select from shards where shard = 0 for update;

-- name: standing
-- Those whose epochs are not dead, held for whoever takes their place. `left`: seconds; `there`: the server has its session.
select
    h.epoch, h.host, h.pid, h.taken_at as since, h.lease_until, h.free_at, h.sessions, h.backend,
    extract(epoch from coalesce(h.free_at, h.lease_until) - clock_timestamp())::float8 as left,
    exists ({holders} and l.pid = h.backend) as there
from hosts h
where h.ended_at is null
order by h.epoch
for update of h;

-- name: owner_sessions
-- The session of a host that holds the lock ($1, $2), by its id on the server ($3), and all that bear the name of its
-- sessions ($4) where that begins as those of one serving process do ($5). Without an id: of whoever has the lock alone.
with holder as (
    select a.pid, coalesce($4, a.application_name) as application_name
    from pg_stat_activity a
    where a.pid in ({holders} and case when $3::integer is null then l.mode = 'ExclusiveLock' else l.pid = $3 end)
)
select a.pid
from pg_stat_activity a
where
    a.datname = current_database() and a.pid <> pg_backend_pid()
    and (
        a.pid in (select pid from holder)
        or starts_with(a.application_name, $5)
        and a.application_name in (select application_name from holder union all select $4::text)
    );

-- name: end_session
select pg_terminate_backend($1);

-- name: look_anew
-- A transaction sees the sessions as they were when it first looked.
select pg_stat_clear_snapshot();

-- name: are_there
select exists (select from pg_stat_activity where pid = any($1::integer[]));

-- name: busy_for
-- Seconds until those before an epoch begin no call any more; null: there were none.
select extract(epoch from max(coalesce(free_at, lease_until)) - clock_timestamp())::float8 from hosts where epoch < $1;

-- name: renew
-- The owner's, and those of all beside it: they go by its lease.
update hosts set lease_until = clock_timestamp() + make_interval(secs => $2), backend = pg_backend_pid()
where $1 in (epoch, beside) and ended_at is null
returning true;

-- name: leave
update hosts set free_at = coalesce(free_at, clock_timestamp()), lease_until = clock_timestamp()
where $1 in (epoch, beside) and ended_at is null;

-- name: last_taken_at
select max(taken_at) from hosts;
