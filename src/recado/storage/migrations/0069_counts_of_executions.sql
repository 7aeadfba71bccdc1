-- Counts of executions as what each commit adds. One row for a journey would be locked by whoever enters until its commit, so that the
-- entries into a journey ran one after the other. A job adds these rows to `journey_counts`; a read sums up both.
create table journey_count_changes (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    id bigint generated always as identity,
    ativa bigint not null,
    concluida bigint not null,
    cancelada bigint not null,
    erro bigint not null,
    primary key (organization_id, env, journey_id, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Those that are over, by how they ended: written once in the life of each.
create index executions_ended on executions (organization_id, env, journey_id, status, id) where status <> 'ativa';

-- Rows that are moved, or taken, all the time, as those of the queue.
alter table executions set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
alter table execution_signals set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);

-- Numbers of steps (C9.10), without tests: what commits add, and what the job has folded of that.
create table step_count_changes (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    id bigint generated always as identity,
    changes json not null, -- arrays of a step, what is counted of it (step_numbers.py), and how many
    primary key (organization_id, env, journey_id, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

create table step_counts (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    step_id text collate "C" not null,
    counted text collate "C" not null,
    total bigint not null,
    primary key (organization_id, env, journey_id, step_id, counted)
) with (fillfactor = 50); -- no index names what changes

-- Which outcomes of its message are counted, as bits: a message is told of again and again.
alter table execution_steps add column outcomes smallint not null default 0;
alter table execution_steps set (
    fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000
);

-- A contact answers a message also when its execution is over: it is told of whoever has, or had, one.
create or replace function contact_signals(of_organization text, of_env text, of_contact text) returns void
language sql volatile
set enable_seqscan = off begin atomic
    insert into execution_signals (organization_id, env, contact_id)
    select of_organization, of_env, of_contact
    where exists (
        select from executions
        where organization_id = of_organization and env = of_env and contact_id = of_contact
    );
end;

-- An event is attributed to no message of a test.
create function count_conversions() returns trigger language plpgsql as $$
begin
    insert into step_count_changes (organization_id, env, journey_id, changes)
    values (
        new.organization_id, new.env, new.journey_id,
        json_build_array(json_build_array(new.journey_step_id, 'conversoes', 1))
    );
    return null;
end
$$;
create trigger conversions_of_steps after insert on customer_events
for each row when (new.journey_id is not null) execute function count_conversions();
