-- Who works on what is due takes a few of each organization, however many one of them has.
create index inbound_media_by_owner on inbound_media (organization_id, due_at) where due_at is not null;

drop index inbound_media_due;

create index message_deadlines_fallbacks on message_deadlines (organization_id, due_at) where kind = 'fallback';
