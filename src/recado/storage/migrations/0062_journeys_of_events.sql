-- The step of a journey that made the message to which a customer event is attributed, and the execution (C21.5).
alter table customer_events
    add column journey_id id,
    add column journey_step_id text collate "C",
    add column journey_run_id id;
