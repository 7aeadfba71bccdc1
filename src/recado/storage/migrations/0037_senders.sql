-- What a message leaves from is a sender of its channel: a number, a social account, a route. Its id is unique within its
-- organization, across environments and channels.
alter table messages rename column number_id to sender_id;
alter table dispatch rename column number_id to sender_id;
alter table batches rename column number_id to sender_id;
alter table chat_windows rename column number_id to sender_id;
alter table tier_recipients rename column number_id to sender_id;
alter table number_minutes rename to sender_minutes;
alter table sender_minutes rename column number_id to sender_id;
alter table provider_messages rename column number_id to sender_id;
alter table inbound_ids rename column number_id to sender_id;
alter table sandbox_reports rename column number_id to sender_id;
alter table parked_reports rename column number_id to sender_id;
alter table opt_out_replies rename column number_id to sender_id;

-- Whose an account at a provider is, across the installation (C14.1).
alter table number_owners rename to sender_owners;
alter table sender_owners rename column phone_number_id to account;
alter table sender_owners rename column number_id to sender_id;
alter table sender_owners add column channel text not null default 'chatapp';
alter table sender_owners alter column channel drop default;
alter table sender_owners drop constraint number_owners_pkey, add primary key (env, channel, account);
