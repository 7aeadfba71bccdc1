-- Journeys (C9): what callers wrote, and what lists show of it without reading the steps, which may be many and large.
create table journeys (
    organization_id id not null,
    env text not null,
    id id not null,
    chain_id id not null, -- the first version
    versao integer not null default 1,
    versao_de id, -- the journey that this version was made of
    status text not null,
    name text not null,
    descricao text,
    fuso_horario text not null,
    gatilho jsonb not null,
    inicio text not null,
    reentrada text not null,
    intervalo_reentrada_horas integer not null,
    silencio jsonb,
    teto_de_frequencia jsonb,
    meta_evento text,
    passos jsonb not null,
    canais text[] not null, -- by which its steps send
    fluxo text[] not null, -- the kinds of the steps that are reached
    criada_por_id text,
    arquivada_em timestamptz,
    revision integer not null default 1,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);

-- Who adds one counts those that are not archived.
create index journeys_not_archived on journeys (organization_id, env) where status <> 'arquivada';

-- Lists are asked by state.
create index journeys_by_status on journeys (organization_id, env, status, id);

create unique index journeys_versions on journeys (organization_id, env, chain_id, versao);
create unique index journeys_open_draft on journeys (organization_id, env, chain_id) where status = 'rascunho';
