-- An organization on the way to another database (decision 0089): suspended, and nobody is answered meanwhile.
alter table organizations add column moving boolean not null default false;
