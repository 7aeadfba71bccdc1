-- Whom a number has written to in the last 24 hours is kept in `tier_recipients` only while its tier has a limit (C14.5.5). When a
-- limit comes it is counted from the messages; until now it was kept of every number, so nothing is missing yet.

-- When a limit came to the tier, until whom the number wrote to before is counted; null: nothing is missing.
alter table numbers add column limited_at timestamptz;

-- The first that was made of the messages which left in this minute: none of them is older. Null of a minute from before.
alter table sender_minutes add column oldest_id id;
