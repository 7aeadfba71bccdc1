-- What customers did (C21), as their own systems tell: a purchase, say. `event_id` is the caller's. What it is attributed to is decided
-- when it is stored, and so stands here: the message may change, or go, later.
create table customer_events (
    organization_id id not null,
    env text not null,
    event_id text collate "C" not null,
    id id not null,
    name text collate "C" not null,
    contact_id id, -- null: nobody was found
    contact_external_id text, -- then; null once the contact is deleted
    occurred_at timestamptz not null,
    value numeric,
    currency text not null,
    properties json,
    message_id id, -- the last touch; null: none
    message_channel text,
    message_sent_at timestamptz,
    campaign_id text collate "C", -- of that message
    primary key (organization_id, env, event_id)
);
create index customer_events_newest on customer_events (organization_id, env, occurred_at, id);
create index customer_events_name on customer_events (organization_id, env, name, occurred_at, id);
create index customer_events_contact on customer_events (organization_id, env, contact_id, occurred_at, id)
where contact_id is not null;

-- When messages left that name a contact: the last one before an event is found at once. No index of `messages` could tell, as the
-- moment of departure would be in it: every departure would then write to all its indexes.
create table contact_touches (
    organization_id id not null,
    env text not null,
    contact_id id not null,
    sent_at timestamptz not null,
    message_id id not null,
    channel text not null,
    primary key (organization_id, env, contact_id, sent_at, message_id)
);
-- An event is a year old at most, and a window has 30 days.
insert into contact_touches (organization_id, env, contact_id, sent_at, message_id, channel)
select organization_id, env, contact_id, sent_at, id, channel
from messages
where direction = 'outbound' and contact_id is not null and sent_at > now() - interval '400 days';

-- Events attributed to messages of the campaign; the value of those in BRL.
alter table campaigns add column conversions bigint not null default 0, add column conversion_value numeric not null default 0;
