-- name: allowed
-- Limits of a user or a database are -1 where there is none.
select least(
  current_setting('max_connections')::int,
  (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
  (select nullif(datconnlimit, -1) from pg_database where datname = current_database())
)
