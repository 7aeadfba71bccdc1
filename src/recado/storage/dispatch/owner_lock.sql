-- name: holders
-- The sessions of this database that have the lock ($1, $2) of those that serve, or are about to; more conditions may follow.
select l.pid
from pg_locks l
join pg_database d on d.oid = l.database
where
    l.locktype = 'advisory' and d.datname = current_database() and l.granted
    and l.classid = $1::integer::oid and l.objid = $2::integer::oid and l.objsubid = 2
