-- What social messages leave from, and by whom they come (C26).
create table social_accounts (
    organization_id id not null,
    env text not null,
    id id not null,
    platform text not null,
    external_account_id text not null,
    display_name text not null,
    status text not null,
    access_token_cipher text,
    connected_at timestamptz,
    deleted_at timestamptz,
    revision bigint not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

-- Whose user ids these are, by the account that sees them so: also of an account that was deleted.
create table social_identities (
    organization_id id not null,
    env text not null,
    social_account_id id not null,
    user_id text collate "C" not null,
    contact_id id not null,
    primary key (organization_id, env, social_account_id, user_id)
);

create index social_identities_contact on social_identities (organization_id, env, contact_id);

-- The same beside the contact, each as account, a space, and user id.
alter table contacts add column social_identities text[] not null default '{}';

-- Messages of people who are no contact yet: whoever links them finds them by the person.
create index messages_unlinked on messages (organization_id, env, sender_id, recipient, id)
where channel = 'social' and contact_id is null;
