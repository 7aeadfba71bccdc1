-- Messages whose callers wait for the provider's answer are claimed in the commit that accepts them. Their content is in memory
-- only: what a dead process had in hand of them is not sent by another.
alter table dispatch add column direct boolean not null default false;
