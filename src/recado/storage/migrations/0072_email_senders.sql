-- What e-mail leaves from: a domain or a single address, and how it proves to be its organization's (C10.4).
create table email_senders (
    organization_id id not null,
    env text not null,
    id id not null,
    domain text,
    address text,
    display_name text,
    status text not null,
    is_default boolean not null,
    token text not null,
    dns_records jsonb not null,
    misses smallint not null,
    checked_at timestamptz,
    next_check_at timestamptz,
    verified_at timestamptz,
    name_key text collate "C" not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id),
    unique (organization_id, env, name_key),
    check ((domain is null) <> (address is null))
);

create unique index email_senders_default on email_senders (organization_id, env) where is_default;
create index email_senders_by_check on email_senders (next_check_at) where next_check_at is not null;
