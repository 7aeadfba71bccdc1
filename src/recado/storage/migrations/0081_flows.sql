-- Flows: forms in screens that interactive messages of a number open (C19).
create table flows (
    organization_id id not null,
    env text not null,
    id id not null,
    number_id id not null,
    name text not null,
    description text,
    status text not null,
    version integer not null,
    provider_flow_id text, -- of the version published last
    provider_status text not null,
    provider_categories text[] not null,
    flow_json jsonb not null,
    published_at timestamptz,
    paused_by_customer boolean not null, -- so what the provider clears stays paused
    reported_at timestamptz, -- of when the provider's latest report was, by its clock
    revision bigint not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

create unique index flows_name on flows (organization_id, env, number_id, name);
create index flows_provider on flows (provider_flow_id) where provider_flow_id is not null;
