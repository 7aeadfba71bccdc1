-- The ownership that last had a file of begun calls (C32). One that ended while it started had none, and claimed nothing: the
-- file of the one before it still tells.

alter table dispatchers
    add column opened_epoch bigint not null default 0,
    add column opened_at timestamptz not null default '-infinity';

update dispatchers set opened_epoch = epoch, opened_at = taken_at;
