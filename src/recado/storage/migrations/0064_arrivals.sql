-- Contacts that are to enter a journey because they joined its list (C9.7), one row each, in the order of joining: they enter in turns.
create table journey_arrivals (
    id bigint generated always as identity primary key,
    organization_id id not null,
    env text not null,
    journey_id id not null,
    contact_id id not null
);
create index journey_arrivals_of_journey on journey_arrivals (organization_id, env, journey_id, id);

-- Journeys that were activated, whose members are not among the arrivals yet.
create table journey_armings (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    list_id id not null,
    primary key (organization_id, env, journey_id)
);

create index journeys_by_list on journeys (organization_id, (gatilho ->> 'listId'))
where gatilho ->> 'tipo' = 'lista' and status in ('ativa', 'pausada') and not entradas_encerradas;

-- Who adds members has locked the row of the list, and who activates a journey holds it: so each member is told of by the one or
-- the other. A statement adds members of one list.
create function arrivals_by_lists() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into journey_arrivals (organization_id, env, journey_id, contact_id)
    select j.organization_id, j.env, j.id, a.contact_id
    from (select organization_id, list_id from added limit 1) l
    cross join lateral (
        select organization_id, env, id from journeys
        where
            organization_id = l.organization_id and gatilho ->> 'listId' = l.list_id
            and gatilho ->> 'tipo' = 'lista' and status in ('ativa', 'pausada') and not entradas_encerradas
    ) j
    cross join added a
    order by a.contact_id, j.id;
    return null;
end
$$;
create trigger members_that_arrive after insert on static_list_members
referencing new table as added for each statement execute function arrivals_by_lists();
