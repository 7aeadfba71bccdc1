-- The part of a batch's past pauses (`held_ms`) before its messages were due: it lengthens no time to live (C14.5).
alter table batches add column early_ms bigint not null default 0;
