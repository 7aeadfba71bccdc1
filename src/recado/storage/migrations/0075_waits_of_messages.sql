-- What a message waited for until it left: milliseconds by reason (C34.4). Null of what hardly waited.
alter table messages add column waits jsonb;
