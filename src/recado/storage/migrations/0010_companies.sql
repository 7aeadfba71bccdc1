-- Companies (C20): whom contacts belong to. A contact names its company; nothing else of it is kept there.

create table companies (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    name_key text collate "C" not null, -- without case and accents: the order of the list, and what a search looks into
    cnpj text, -- 14 characters, unmasked
    segment text,
    site text,
    address text,
    responsible_id id, -- an account
    main_contact_id id, -- it may be gone: then the company has none
    attributes jsonb not null,
    created_by_id text,
    revision integer not null default 1,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);
create unique index companies_cnpj on companies (organization_id, env, cnpj) where cnpj is not null;
create index companies_name on companies (organization_id, env, name_key, id);
create index companies_responsible on companies (organization_id, env, responsible_id, name_key, id)
where responsible_id is not null;

-- How many there are: the limit of C31 is kept without counting a hundred thousand rows.
create table company_counts (
    organization_id id not null,
    env text not null,
    companies integer not null,
    primary key (organization_id, env)
) with (fillfactor = 50);
