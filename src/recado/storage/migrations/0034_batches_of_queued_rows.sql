-- The batch that a queued message is counted in, apart from who owns its row: the owner is whose turns and pauses it has. A message
-- that was made for a batch after its cancel is counted there, and waits for itself alone.
alter table dispatch add column batch_id id;
update dispatch
set batch_id = rtrim(owner, '+'), owner = case when right(owner, 1) = '+' then 'single' else owner end
where starts_with(owner, 'btc_');
