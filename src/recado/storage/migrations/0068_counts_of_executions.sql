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
