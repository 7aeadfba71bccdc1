-- An epoch beside that of an owner: of a process that sends for it, under its lease (C14.5.6). Null: an owner's own.
alter table hosts add column beside bigint;
