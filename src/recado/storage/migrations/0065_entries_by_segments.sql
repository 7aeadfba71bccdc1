-- Journeys that take in whoever comes to match a segment (C9.7): when each looks again, and how far its look is.
create table journey_segments (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    segment_id id not null,
    due_at timestamptz not null,
    after_id id not null default '', -- contacts up to this one have been looked at
    primary key (organization_id, env, journey_id)
) with (fillfactor = 70);
create index journey_segments_due on journey_segments (due_at);

-- Who matched at the last look: whoever stays does not enter again for it.
create table journey_matches (
    organization_id id not null,
    env text not null,
    journey_id id not null,
    contact_id id not null,
    primary key (organization_id, env, journey_id, contact_id)
);
