-- What journeys pause themselves for, and go on by (C9.7.5, C9.8.4).
alter table journeys
    add column lacked_coins bigint, -- of the message that the wallet did not cover, when it paused last
    add column failed_until id; -- the last message of those that failed in a row, when it paused for them: later ones are counted anew

-- Those that wait for coins: few, and looked for all the time.
create index journeys_without_coins on journeys (organization_id, env, id)
where status = 'pausada' and pausada_por ->> 'motivo' = 'saldo_insuficiente';

-- The messages of a step in the order in which they were made, without those of tests.
alter table execution_steps add column journey_id id;
create index execution_steps_of_journey on execution_steps (organization_id, journey_id, step_id, message_id)
where journey_id is not null;

-- Messages of journeys that failed for certain: added by the commits in which they fail, and taken by who looks whether they are many in a
-- row. Messages of no journey pay nothing for it.
create table journey_failures (
    id bigint generated always as identity primary key,
    organization_id id not null,
    message_id id not null
);

create or replace function message_signals() returns trigger language plpgsql as $$
begin
    insert into execution_signals (organization_id, env, journey_id, message_id)
    values (new.organization_id, new.env, new.journey_id, new.id);
    if new.failed_at is not null and new.outcome_certain then
        insert into journey_failures (organization_id, message_id) values (new.organization_id, new.id);
    end if;
    return null;
end
$$;
