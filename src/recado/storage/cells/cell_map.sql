-- The control database: which cells there are, and where each organization is. Nothing of what they hold.

-- name: make
create schema if not exists recado_cells;
create table if not exists recado_cells.cells (
    name text primary key,
    database_from text not null, -- the environment variable that holds the address of its database
    url text not null, -- of its service
    media text, -- its folder of media, or its bucket
    added_at timestamptz not null
);
create table if not exists recado_cells.organizations (
    organization_id text primary key,
    cell text not null references recado_cells.cells,
    moving_to text references recado_cells.cells,
    left_cell text references recado_cells.cells, -- that served it before, and has remains of it
    since timestamptz not null
);

-- name: add
insert into recado_cells.cells (name, database_from, url, media, added_at) values ($1, $2, $3, $4, clock_timestamp())
on conflict (name) do update set database_from = excluded.database_from, url = excluded.url, media = excluded.media;

-- name: remove
delete from recado_cells.cells where name = $1;

-- name: lose
delete from recado_cells.organizations where cell = $1 returning organization_id;

-- name: lose_remains
update recado_cells.organizations set left_cell = null where left_cell = $1;

-- name: cells
select name, database_from, url, media from recado_cells.cells order by name;

-- name: know
-- Those that a cell has, and which no other one had before.
insert into recado_cells.organizations (organization_id, cell, since)
select id, $1, clock_timestamp() from unnest($2::text[]) as g (id)
on conflict do nothing;

-- name: remains
-- Of those whom another cell serves: what is on its way out here still, as after a move whose end the map did not see.
update recado_cells.organizations set left_cell = $1
where organization_id = any($2::text[]) and cell <> $1 and moving_to is null and left_cell is null;

-- name: forget
delete from recado_cells.organizations where cell = $1 and organization_id <> all($2::text[]);

-- name: places
select organization_id, cell, moving_to, left_cell from recado_cells.organizations order by organization_id;

-- name: place
select organization_id, cell, moving_to, left_cell from recado_cells.organizations where organization_id = $1;

-- name: any_moving
select exists (select from recado_cells.organizations where moving_to is not null);

-- name: moving
update recado_cells.organizations set moving_to = $2, since = clock_timestamp() where organization_id = $1;

-- name: settle
insert into recado_cells.organizations (organization_id, cell, left_cell, since) values ($1, $2, $3, clock_timestamp())
on conflict (organization_id) do update
set cell = excluded.cell, moving_to = null, left_cell = excluded.left_cell, since = excluded.since;

-- name: organizations
select id, name, moving from organizations order by id;
