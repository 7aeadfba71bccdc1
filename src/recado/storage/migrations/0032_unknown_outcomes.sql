-- When the last call began of a message that failed by unknown outcome: its row of the queue, which knew, is gone. A report that
-- still comes makes it the moment at which the message was sent (C15.4). Null of every other message, and in no index.
alter table messages add column called_at timestamptz;
