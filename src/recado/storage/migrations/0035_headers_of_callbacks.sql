-- What a callback's body is read with: its content type, and the headers that its adapter names. Those that are stored already were
-- read without.
alter table callbacks add column headers jsonb not null default '{}';
