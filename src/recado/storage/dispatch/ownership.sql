-- The owner of a database holds an advisory lock of a session that does nothing else: the server gives it free when the process
-- or its machine is gone, and at no other moment.

-- name: try_lock
select pg_try_advisory_lock($1, $2);

-- name: unlock
select pg_advisory_unlock($1, $2);

-- name: owner
select owner_host as host, owner_pid as pid, owned_since as since from dispatchers where shard = 0;

-- name: is_held
select exists (
    select from pg_locks l
    join pg_database d on d.oid = l.database
    where
        l.locktype = 'advisory' and d.datname = current_database() and l.granted
        and l.classid = $1::integer::oid and l.objid = $2::integer::oid and l.objsubid = 2
);

-- name: own
update dispatchers set owner_host = $1, owner_pid = $2, owned_since = $3 where shard = 0;

-- name: leave
update dispatchers set owner_host = null, owner_pid = null, owned_since = null
where shard = 0 and owner_host = $1 and owner_pid = $2;

-- name: owner_sessions
-- The session that holds the lock, and where its name is that of one serving process ($3: how such names begin), all that bear it.
with holder as (
    select a.pid, a.application_name
    from pg_locks l
    join pg_database d on d.oid = l.database
    join pg_stat_activity a on a.pid = l.pid
    where
        l.locktype = 'advisory' and d.datname = current_database() and l.granted
        and l.classid = $1::integer::oid and l.objid = $2::integer::oid and l.objsubid = 2
)
select a.pid
from pg_stat_activity a
join holder h on h.pid = a.pid or (h.application_name = a.application_name and starts_with(h.application_name, $3))
where a.datname = current_database() and a.pid <> pg_backend_pid();

-- name: end_session
select pg_terminate_backend($1);

-- name: are_there
select exists (select from pg_stat_activity where pid = any($1::integer[]));
