-- Links that bring people to a chat, and the codes by which their first message tells which one it was (C27.4).
create table origin_links (
    organization_id id not null,
    env text not null,
    id id not null,
    name text not null,
    number_id id not null,
    text text not null,
    fonte text not null,
    fonte_rotulo text,
    slug text collate "C" not null,
    clicks bigint not null default 0,
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
) with (fillfactor = 70); -- each batch of clicks is one more version

-- Whose link an address is: who opens it says nothing but that.
create unique index origin_links_by_slug on origin_links (slug);

create table origin_codes (
    organization_id id not null,
    sender_id id not null,
    code text collate "C" not null,
    origin json not null,
    created_at timestamptz not null,
    primary key (organization_id, sender_id, code)
);

create index origin_codes_by_age on origin_codes (created_at);

alter table messages add column link_origin json;
