-- What each message to an audience counts for, and what its channel alone knows of it, as a JSON text.
alter table batch_audiences add column units integer not null default 1, add column details text;
