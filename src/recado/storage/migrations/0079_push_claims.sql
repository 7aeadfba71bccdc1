-- Devices that are tried again are claimed one by one: by which process and when, until the outcome is written (C32).
alter table push_dispatches add claimed_at timestamptz, add epoch bigint;

create index push_dispatches_claimed on push_dispatches (epoch) where claimed_at is not null;
