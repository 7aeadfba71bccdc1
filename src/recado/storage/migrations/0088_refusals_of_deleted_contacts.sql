-- Whether a deleted contact had refused: its devices that are unlinked later opt out, too (C22.2). What is due already is a matter of minutes.
alter table contact_erasures add column refused boolean not null default false;
