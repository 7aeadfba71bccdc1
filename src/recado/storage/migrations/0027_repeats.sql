-- A message whose outcome is unknown, and which an idempotent adapter is given again (C29.2): the moment of its last call. Until an
-- answer or a report decides it is being sent, also while its row waits in the queue: nothing that ends queued messages ends it.
alter table dispatch add column repeat_of timestamptz;
-- A claim leaves the column alone, and so stays heap-only.
create index dispatch_repeats on dispatch (organization_id, number_id) where repeat_of is not null;
