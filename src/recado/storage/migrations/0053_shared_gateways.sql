-- What a message of a channel whose senders share gateways left through, and the last report of it as its provider gave it (C16.3).
alter table messages add column gateway text, add column receipt jsonb;
-- Whom organizations have lately sent to from senders that they share: whose it is what comes back from there (C28.1). It holds nothing
-- else, as the organization is what is looked for. `address_hash`: SHA-256 of channel, colon and address.
create table reached_recipients (
    env text not null,
    channel text not null,
    address_hash bytea not null,
    organization_id id not null,
    sender_id id not null,
    reached_at timestamptz not null,
    primary key (env, channel, address_hash, organization_id)
);
create index organizations_by_sender on organizations (dedicated_sender) where dedicated_sender is not null;
