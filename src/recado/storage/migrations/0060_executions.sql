-- Executions (C9.10): the way of one contact through a journey. One that waits is this row, and nothing in memory.
create table executions (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    id id not null,
    chain_id id not null, -- of the journey: its first version
    versao integer not null,
    contact_id id not null,
    status text not null,
    motivo text, -- what ended it
    origem text not null,
    teste boolean not null,
    hurried boolean not null, -- a test that leaves waits out
    entrada json not null, -- what the contact entered with
    step_id text collate "C" not null, -- where it stands, or stood at its end
    passed smallint not null default 0, -- steps on its way there
    arrived_at timestamptz not null, -- there
    wake_at timestamptz, -- when it is looked at again; null: when something happens, or never
    awaited text, -- what it waits for
    awaited_until timestamptz, -- null: nobody knows until when
    overslept boolean not null default false, -- it was due while its journey was paused
    failures smallint not null default 0, -- of its step, in a row
    started_at timestamptz not null,
    ended_at timestamptz,
    primary key (organization_id, env, journey_id, id)
) with (fillfactor = 80);

-- Each move of an execution writes to all of these: there is none that a list could do without.
create index executions_due on executions (organization_id, wake_at) where wake_at is not null;
create index executions_of_contact on executions (organization_id, env, contact_id, id);
create index executions_active on executions (organization_id, env, journey_id, id) where status = 'ativa';
create index executions_overslept on executions (organization_id, env, journey_id, id) where overslept;

-- The steps that an execution has passed: what its trail tells, and the claim that keeps a step from being passed twice (C9.15). A row
-- of its own, so that an execution does not grow with its way: each move would write all of it anew.
create table execution_steps (
    organization_id id not null,
    execution_id id not null,
    step_id text collate "C" not null,
    env text not null,
    tipo text not null,
    at timestamptz not null,
    place smallint not null, -- on the way
    resultado text not null,
    detalhe text,
    message_id id,
    channel text, -- of the message
    capped_contact_id id, -- of a message that counts toward caps of frequency (C9.8.2)
    primary key (organization_id, execution_id, step_id)
);
create index execution_steps_of_message on execution_steps (organization_id, message_id) where message_id is not null;
create index execution_steps_capped on execution_steps (organization_id, env, capped_contact_id, at)
where capped_contact_id is not null;

-- Who has entered a chain of versions, and when last (C9.7.3): of two who bring a contact in at once, one does. No test stands here.
create table chain_entries (
    organization_id id not null,
    env text not null,
    chain_id id not null,
    contact_id id not null,
    journey_id id not null,
    execution_id id not null,
    entered_at timestamptz not null,
    primary key (organization_id, env, chain_id, contact_id)
);

-- How many executions of a journey there are by their state, without tests: `execucoes` of each read. Changed in the commits that begin
-- and end some, one row for each journey.
create table journey_counts (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    ativa bigint not null,
    concluida bigint not null,
    cancelada bigint not null,
    erro bigint not null,
    primary key (organization_id, env, journey_id)
) with (fillfactor = 50); -- no index names what changes

-- Signals (C9.6): what happened to a message of a journey, to a contact on its way through one, or to a journey. Rows are only added by the commits in
-- which it happens, and taken later, so that nobody there waits for an execution that is in hand. What belongs to no journey pays
-- a comparison.
create table execution_signals (
    id bigint generated always as identity primary key,
    organization_id id not null,
    env text not null,
    journey_id id, -- of the message; alone: the journey is over
    message_id id,
    contact_id id -- or else
);

alter table messages add column journey_id id; -- whose step made it

create function message_signals() returns trigger language plpgsql as $$
begin
    insert into execution_signals (organization_id, env, journey_id, message_id)
    values (new.organization_id, new.env, new.journey_id, new.id);
    return null;
end
$$;
create trigger messages_of_journeys after update of status on messages
for each row when (new.journey_id is not null) execute function message_signals();

create function contact_signals(of_organization text, of_env text, of_contact text) returns void language sql volatile
set enable_seqscan = off begin atomic
    insert into execution_signals (organization_id, env, contact_id)
    select of_organization, of_env, of_contact
    where exists (
        select from executions
        where organization_id = of_organization and env = of_env and contact_id = of_contact and status = 'ativa'
    );
end;

create function signals_of_contact() returns trigger language plpgsql as $$
begin
    perform contact_signals(new.organization_id, new.env, new.contact_id);
    return null;
end
$$;
create trigger messages_of_contacts after insert on messages
for each row when (new.direction = 'inbound' and new.contact_id is not null) execute function signals_of_contact();
create trigger events_of_contacts after insert on customer_events
for each row when (new.contact_id is not null) execute function signals_of_contact();

create function signals_of_refusal() returns trigger language plpgsql as $$
begin
    perform contact_signals(old.organization_id, old.env, old.id);
    return null;
end
$$;
create trigger refusals_of_contacts after update of opt_in_status on contacts
for each row when (new.opt_in_status = 'denied' and old.opt_in_status <> 'denied') execute function signals_of_refusal();
create trigger ends_of_contacts after delete on contacts for each row execute function signals_of_refusal();

create function click_signals() returns trigger language plpgsql as $$
begin
    insert into execution_signals (organization_id, env, journey_id, message_id)
    select organization_id, env, journey_id, id from messages
    where organization_id = new.organization_id and env = new.env and channel = new.channel and id = new.message_id
        and journey_id is not null;
    return null;
end
$$;
create trigger clicks_of_messages after update of first_clicked_at on tracked_links
for each row when (old.first_clicked_at is null and new.first_clicked_at is not null) execute function click_signals();

create function signals_of_journey() returns trigger language plpgsql as $$
begin
    insert into execution_signals (organization_id, env, journey_id) values (new.organization_id, new.env, new.id);
    return null;
end
$$;
create trigger ends_of_journeys after update of status on journeys
for each row when (new.status = 'arquivada' and old.status <> 'arquivada') execute function signals_of_journey();
