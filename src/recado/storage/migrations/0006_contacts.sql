-- Contacts (C12): whom messages are sent to, what they consented to, and who asked for none.
-- Built for a million rows of one organization: a list is read along an index in its order, a search through one GIN index.

create table contacts (
    organization_id id not null,
    env text not null,
    id id not null,
    phone text not null, -- canonical (C2.4)
    phone_hash bytea not null, -- SHA-256 of organization id, a colon, and the phone
    name text,
    chatapp_profile_name text,
    email text, -- as it was given
    email_key text, -- in lower case: how addresses are compared
    avatar_url text,
    cpf_cipher text,
    cnpj_cipher text,
    birth_date_cipher text,
    cpf_index bytea, -- blind indexes (C30.2)
    cnpj_index bytea,
    attributes jsonb not null default '{}',
    tags text[] not null default '{}', -- in their first spelling
    tag_keys text[] not null default '{}', -- the same tags without case, in the same order: how tags are compared
    source text not null, -- manual, import, api, webhook
    external_id text,
    external_ids jsonb not null default '{}', -- by integration
    company_id id,
    company_role text, -- papelNaEmpresa
    opt_in_status text not null, -- granted, denied, unknown
    opt_in_source text,
    opt_in_at timestamptz,
    opt_in_ip text,
    opt_in_user_agent text,
    opt_in_revoked_at timestamptz,
    opt_in_revoked_reason text,
    unreachable text[] not null default '{}', -- channels on which a provider called the phone no recipient (C13.2)
    last_interaction_at timestamptz, -- moves neither revision nor updated_at
    -- Words of name, profile name and e-mail, without case and accents; the phone's digits, and those digits reversed. Each
    -- begins with a mark of organization and environment, so that a search reads no entry of others.
    search tsvector not null,
    revision integer not null default 1,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
) with (fillfactor = 85);
create unique index contacts_phone on contacts (organization_id, env, phone);
create unique index contacts_external_id on contacts (organization_id, env, external_id) where external_id is not null;
create index contacts_email on contacts (organization_id, env, email_key) where email_key is not null;
create index contacts_updated on contacts (organization_id, env, updated_at, id);
create index contacts_opt_in on contacts (organization_id, env, opt_in_status, id);
create index contacts_source on contacts (organization_id, env, source, id);
create index contacts_company on contacts (organization_id, env, company_id, id) where company_id is not null;
create index contacts_cpf on contacts (organization_id, env, cpf_index) where cpf_index is not null;
create index contacts_cnpj on contacts (organization_id, env, cnpj_index) where cnpj_index is not null;
create index contacts_tags on contacts using gin (tag_keys) with (gin_pending_list_limit = 1024);
create index contacts_search on contacts using gin (search) with (gin_pending_list_limit = 1024);

-- Every change of a contact's consent, and how it was born when that was not `unknown` (C12.5.2). A change raises the
-- contact's revision, which therefore names it.
create table contact_consents (
    organization_id id not null,
    env text not null,
    contact_id id not null,
    revision integer not null,
    from_status text, -- null: the contact was created with it
    to_status text not null,
    at timestamptz not null, -- of the consent or the refusal
    date_given boolean not null, -- `at` came from the caller
    source text,
    ip text,
    user_agent text,
    reason text, -- of a refusal
    actor_type text, -- api_key, account, system
    actor_id text,
    recorded_at timestamptz not null,
    primary key (organization_id, env, contact_id, revision)
);
create index contact_consents_age on contact_consents (recorded_at);

-- The opt-out registry (C12.5.8): it outlives its contacts, and so holds no address.
create table opt_outs (
    organization_id id not null,
    env text not null,
    kind text not null, -- phone, email
    hash bytea not null, -- SHA-256 of organization id, a colon, and the canonical phone or the address in lower case
    at timestamptz not null,
    source text,
    primary key (organization_id, env, kind, hash)
);

-- Debt groups (C12.9), in the order in which they were given.
create table debtor_groups (
    organization_id id not null,
    env text not null,
    id id not null,
    contact_id id not null,
    position smallint not null,
    company text not null,
    company_key text not null, -- without case and accents
    phones text[] not null,
    amount_cents bigint,
    status text, -- vencida, em_atraso, em_dia
    reference text,
    primary key (organization_id, env, id)
);
create index debtor_groups_contact on debtor_groups (organization_id, env, contact_id, position);
create index debtor_groups_status on debtor_groups (organization_id, env, status, id) where status is not null;

-- Keys of attributes in use, counted hourly (C12.8).
create table contact_fields (
    organization_id id not null,
    env text not null,
    key text collate "C" not null,
    type text not null, -- text, number, boolean, list, mixed
    uses bigint not null,
    primary key (organization_id, env, key)
);
-- When an environment's keys were counted, and up to which change of a contact.
create table contact_field_counts (
    organization_id id not null,
    env text not null,
    counted_at timestamptz not null,
    primary key (organization_id, env)
);

-- Whose a queued message is that is subject to consent (C12.5.4): a refusal finds it here and withdraws it. Null for every
-- other message, which pays nothing for the index.
alter table dispatch add column consent_hash bigint; -- messages.recipient_hash
create index dispatch_consent on dispatch (organization_id, env, consent_hash) where consent_hash is not null;
update dispatch d
set consent_hash = m.recipient_hash
from messages m
where
    m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id
    and m.type = 'template' and coalesce(m.template_category, 'marketing') = 'marketing';

-- Deleted contacts whose messages still have to lose recipient and content (C12.6): done in blocks, up to `after_id` so far.
create table contact_erasures (
    organization_id id not null,
    env text not null,
    contact_id id not null,
    after_id id not null default '',
    due_at timestamptz not null, -- later than at once while one of its messages is being sent
    primary key (organization_id, env, contact_id)
);
create index contact_erasures_due on contact_erasures (due_at);
