-- Claims share the fence of their owner's epoch until they are committed; whoever takes the place shuts it, and from then on has it
-- alone (ownership.sql). A statement that saw the epoch alive, and comes to the fence when it is shut, claims nothing.

-- name: owner
select epoch from hosts
where epoch = {epoch}::bigint and ended_at is null and pg_try_advisory_xact_lock_shared({fence}, {epoch}::bigint::integer)

-- name: shut
-- From now on no claim of the epoch commits. Waits for those that are under way.
select pg_advisory_lock($1, $2);
