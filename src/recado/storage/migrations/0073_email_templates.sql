-- Templates of e-mails (C10.4). `placeholders`: the names that each part uses, so that a change of one part is checked without reading
-- the others.
create table email_templates (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    subject text not null,
    html text not null,
    text text,
    mjml text,
    variables jsonb not null,
    placeholders jsonb not null,
    status text not null,
    version integer not null,
    created_by_id text not null,
    revision integer not null,
    name_key text collate "C" not null,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

-- An archived one gives its name back.
create unique index email_templates_by_name on email_templates (organization_id, env, name_key) where status = 'active';
