-- What is claimed, by statement: a rescuer finds the claims of a dead process here, and reads no row of the queue that nobody
-- claimed. An index of the claimed rows would cost each claim its heap-only update, half as much again.
create table claims (
    epoch bigint not null,
    at timestamptz not null,
    organization_ids text not null, -- packed, as the statement's own columns are; some of them may have been lost to it
    ids text not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index claims_age on claims (epoch, at);

-- Whether every owner since then has noted its claims: while it is false, the queue is read from end to end instead.
alter table dispatchers add column notes_claims boolean not null default false;
