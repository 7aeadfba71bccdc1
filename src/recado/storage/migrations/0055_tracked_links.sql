-- Links in messages, by their codes, and how often people opened them (C27.1). Who opens one names nothing but the code.
create table tracked_links (
    code text collate "C" primary key,
    organization_id id not null,
    env text not null,
    channel text not null,
    message_id id not null,
    url text not null,
    clicks bigint not null default 0,
    first_clicked_at timestamptz,
    last_clicked_at timestamptz
) with (fillfactor = 70); -- no index names what a click changes

-- Order by id is order of creation: what is past its time stands first.
create index tracked_links_of_message on tracked_links (message_id);

alter table campaigns add column clicks bigint not null default 0;
