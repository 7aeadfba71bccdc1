-- Customer events that may bring their contact into journeys (C9.7), one row each, until that is done: added in the commit that
-- stores the event, whoever stores it. Only events of `live` bring anybody in (C21.7).
create table event_entries (
    id bigint generated always as identity primary key,
    organization_id id not null,
    env text not null,
    event_id text collate "C" not null, -- the caller's
    after_journey_id id not null default '' -- journeys up to this one have been asked
);
create index event_entries_of_organization on event_entries (organization_id, id);

-- Those that may take somebody in, by the name of the event.
create index journeys_by_event on journeys (organization_id, env, (gatilho ->> 'nome'), id)
where gatilho ->> 'tipo' = 'evento' and status in ('ativa', 'pausada') and not entradas_encerradas;

create function entries_of_events() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into event_entries (organization_id, env, event_id)
    select organization_id, env, event_id from added
    where
        env = 'live' and contact_id is not null
        and exists (
            select from journeys
            where
                organization_id = added.organization_id and env = added.env and gatilho ->> 'nome' = added.name
                and gatilho ->> 'tipo' = 'evento' and status in ('ativa', 'pausada') and not entradas_encerradas
        );
    return null;
end
$$;
create trigger events_that_bring_in after insert on customer_events
referencing new table as added for each statement execute function entries_of_events();
