-- Who owns the numbers, by lease (C14.5.6). A host is one life of a process; its epoch stands in all that it claims.

create table hosts (
    epoch bigint primary key,
    host text, -- of the process, for people; null: nobody's name
    pid integer,
    sessions text, -- the name of its database sessions, and the server's id of the one that renews the lease
    backend integer,
    taken_at timestamptz not null, -- by its own clock: with the epoch, it names the file of begun calls (C32)
    lease_until timestamptz not null, -- by the database's clock, as the two below
    free_at timestamptz, -- from when on it began no call, where that is known
    ended_at timestamptz, -- since when nothing that it claims can commit: its epoch is dead
    opened boolean not null default false -- it began its file of begun calls
) with (fillfactor = 50);

create table shards (
    shard smallint primary key,
    epoch bigint not null
);

-- The last owner by the lock of before may run on for some seconds, unless it stopped in order. It can claim nothing any more.
insert into hosts (epoch, host, pid, taken_at, lease_until, free_at, ended_at)
select
    epoch, owner_host, owner_pid, taken_at, clock_timestamp() + interval '6 seconds',
    case when owner_host is null then clock_timestamp() end, clock_timestamp()
from dispatchers where shard = 0 and epoch > 0;
insert into hosts (epoch, taken_at, lease_until, free_at, ended_at, opened)
select opened_epoch, opened_at, clock_timestamp(), clock_timestamp(), clock_timestamp(), true
from dispatchers where shard = 0 and opened_epoch > 0
on conflict (epoch) do update set opened = true;
insert into shards select n, d.epoch from generate_series(0, 255) n cross join dispatchers d where d.shard = 0;

-- Claims of versions that noted none.
insert into claims (epoch, at, organization_ids, ids)
select claimed_epoch, claimed_at, organization_id, id
from dispatch
where
    claimed_epoch is not null and claimed_at is not null and reason is distinct from 'uncertain'
    and (select not notes_claims from dispatchers where shard = 0);

-- A service of an earlier version that runs still reads this table: it finds that another has taken the numbers, and ends. A later
-- version drops it.
update dispatchers set epoch = epoch + 1, owner_host = null, owner_pid = null, owned_since = null;
