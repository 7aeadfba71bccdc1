-- Accounts of people, their invitations and sessions (C24.2, C24.3), and how often documents were revealed to whom (C12.4).
-- All but the last are looked up before the organization is known: reference tables of a distributed database.

create table accounts (
    organization_id id not null,
    id id primary key,
    name text not null,
    email text not null, -- as it was given
    email_key text not null, -- in lower case: how addresses are compared
    role text not null, -- owner, admin, operator, analyst
    extra_scopes text[] not null,
    status text not null, -- invited, active, disabled
    password_hash text, -- scrypt; null until the invitation is accepted
    invited_by_id text,
    last_login_at timestamptz,
    updated_at timestamptz not null
);
create unique index accounts_email on accounts (email_key);
create index accounts_organization on accounts (organization_id, id);

-- One for each account that is invited; gone when it is accepted, or another one takes its place.
create table account_invites (
    account_id id primary key,
    token_hash bytea not null unique,
    expires_at timestamptz not null
);

-- One sign-in, with one token for each environment. Kept for a day after its end, so that its tokens are told apart from
-- tokens that never were.
create table sessions (
    id id primary key,
    organization_id id not null,
    account_id id not null,
    live_hash bytea not null unique,
    test_hash bytea not null unique,
    expires_at timestamptz not null, -- at most 12 h after the sign-in
    last_used_at timestamptz not null, -- up to a minute behind
    ended_at timestamptz -- signed out, or the account was disabled
) with (fillfactor = 70);
create index sessions_account on sessions (account_id) where ended_at is null;
create index sessions_age on sessions (expires_at);

-- Sign-ins that failed or are under way, also for addresses that nobody has: whoever counts refusals learns nothing.
create table login_attempts (
    email_hash bytea primary key, -- SHA-256 of the address in lower case
    failures smallint not null,
    last_at timestamptz not null
);
create index login_attempts_age on login_attempts (last_at);

create table document_reveals (
    organization_id id not null,
    account_id id not null,
    id id not null, -- of its entry in the audit
    primary key (organization_id, account_id, id)
);
