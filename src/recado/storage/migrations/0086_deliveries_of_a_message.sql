-- Deliveries that tell of a message are found by its events (C23.1). Ids of messages are unique in the whole installation.
create index events_messages on events (message_id, id) where message_id is not null;
-- An event's first delivery is found by its time, in the queue as in the log; later ones here.
create index delivery_queue_replayed on delivery_queue (organization_id, subscription_id, event_id) where replayed;
