-- Contacts that are to enter a journey because they joined its list (C9.7), one row each, in the order of joining: they enter in turns.
create table journey_arrivals (
    id bigint generated always as identity primary key,
    organization_id id not null,
    env text not null,
    journey_id id not null,
    contact_id id not null
);
create index journey_arrivals_of_journey on journey_arrivals (organization_id, env, journey_id, id);

-- Who joined a list that leads into journeys, until these have been told.
create table list_arrivals (
    id bigint generated always as identity primary key,
    organization_id id not null,
    list_id id not null,
    contact_id id not null
);
create index list_arrivals_of_organization on list_arrivals (organization_id, id);

-- Journeys that were activated, and how far the members of their lists are among the arrivals.
create table journey_armings (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    list_id id not null,
    after_id id not null default '', -- members up to this one
    turn_at timestamptz not null, -- since when it waits for its next turn
    primary key (organization_id, env, journey_id)
);
create index journey_armings_turns on journey_armings (turn_at);

create index journeys_by_list on journeys (organization_id, (gatilho ->> 'listId'))
where gatilho ->> 'tipo' = 'lista' and status in ('ativa', 'pausada') and not entradas_encerradas;

-- Who adds members has locked the row of the list, and who activates a journey holds it: so each member is told of by the one or
-- the other. A row for each member, however many journeys there are: the statement is a caller's, who waits for it.
create function arrivals_of_lists() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into list_arrivals (organization_id, list_id, contact_id)
    select organization_id, list_id, contact_id from added
    where exists (
        select from journeys
        where
            organization_id = added.organization_id and gatilho ->> 'listId' = added.list_id
            and gatilho ->> 'tipo' = 'lista' and status in ('ativa', 'pausada') and not entradas_encerradas
    )
    order by contact_id;
    return null;
end
$$;
create trigger members_that_arrive after insert on static_list_members
referencing new table as added for each statement execute function arrivals_of_lists();
