-- Of how many units a message is, segments or devices: its price is that of a unit so many times, and so many count in the month
-- (C25.2, C25.3). What else is known of a message by its channel alone: its reading is the channel's.
alter table messages add column units integer not null default 1, add column details jsonb;
-- What a queued message belongs to, for fairness and pauses: 'batch', or 'single' when to nothing (C14.5.2). Which one is its owner's id.
alter table dispatch add column units integer not null default 1, add column source_kind text not null default 'single';
update dispatch set source_kind = 'batch' where owner <> 'single';
