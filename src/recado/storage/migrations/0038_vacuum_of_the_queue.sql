-- These tables are small and lose thousands of rows a second. The pauses that spare the disk from the vacuum of a large table would
-- let as many rows die meanwhile as it removes: here it makes none.
alter table dispatch set (autovacuum_vacuum_cost_delay = 0);
alter table claims set (autovacuum_vacuum_cost_delay = 0);
alter table delivery_queue set (autovacuum_vacuum_cost_delay = 0);
