-- The calls of webhook steps (C9.13): one row for an execution at such a step, from the first call that is to be made until the step is
-- passed, or the execution is over.
create table step_calls (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    execution_id id not null,
    step_id text collate "C" not null,
    webhook_id id not null,
    event_id id not null, -- of the envelope, and of each attempt the same
    delivery_id id not null, -- likewise
    wanted_at timestamptz, -- since when a call is to be made, or is under way; null: none is
    claimed_at timestamptz, -- since when it is under way
    made smallint not null default 0, -- calls that have ended
    status smallint, -- of the answer to the last of them; null: there was none
    ended_at timestamptz, -- when it ended
    refused boolean not null default false, -- the address may not be called: there was no call
    primary key (organization_id, execution_id, step_id)
) with (fillfactor = 50);

create index step_calls_wanted on step_calls (organization_id, webhook_id, wanted_at)
where wanted_at is not null and claimed_at is null;
create index step_calls_claimed on step_calls (claimed_at) where claimed_at is not null;
