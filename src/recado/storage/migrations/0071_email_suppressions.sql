-- Addresses that get no e-mail any more (C10.5), by the hash that the registry of opt-outs uses as well.
create table email_suppressions (
    organization_id id not null,
    env text not null,
    id id not null,
    email text not null,
    reason text not null,
    hash bytea not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id),
    unique (organization_id, env, hash)
);
