-- What becomes of journeys that are activated (C9.12): since when, what pauses one, and the version that took its place.
alter table journeys
    add column ativada_em timestamptz,
    add column pausada_em timestamptz,
    add column pausada_por jsonb, -- where it paused itself
    add column substituida_por id,
    add column entradas_encerradas boolean not null default false;
