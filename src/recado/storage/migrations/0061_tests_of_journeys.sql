-- Tests of a journey are few beside its other executions: those of the last hour are counted (C9.9).
create index executions_tests on executions (organization_id, env, journey_id, id) where teste;
