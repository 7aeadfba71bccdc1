-- Journeys that take in whoever comes to match a segment (C9.7): their looks, and whom each found.

-- name: begin
insert into journey_segments (organization_id, env, journey_id, segment_id, due_at) values ($1, $2, $3, $4, $5)
on conflict do nothing;

-- name: claim_due
-- Looks that are due at $1, one of an organization, of the thousands that are due for longest; the next moment is set first, so that
-- one that fails, or a crash, keeps none of the others waiting. A journey that a person paused looks when it goes on.
with oldest as materialized (
    select s.organization_id, s.env, s.journey_id, s.due_at
    from (select * from journey_segments where due_at <= $1 order by due_at limit 5000) s
    cross join lateral (
        select status, pausada_por from journeys
        where organization_id = s.organization_id and env = s.env and id >= s.journey_id and id <= s.journey_id
        order by id
        limit 1
    ) j
    where j.status <> 'pausada' or j.pausada_por is not null
),
firsts as materialized (
    select distinct on (organization_id) organization_id, env, journey_id, due_at from oldest order by organization_id, due_at
)
update journey_segments s
set due_at = $2
from (select * from firsts order by due_at limit $3) f
where s.organization_id = f.organization_id and s.env = f.env and s.journey_id = f.journey_id
returning s.*;

-- name: saw
-- Those ($4) of the contacts after $5 and up to $6 match, and no others: who did not match at the last look arrives.
with gone as (
    delete from journey_matches
    where
        organization_id = $1 and env = $2 and journey_id = $3 and contact_id > $5 and contact_id <= $6
        and (contact_id in (select unnest($4::text[]))) is not true
),
fresh as (
    insert into journey_matches (organization_id, env, journey_id, contact_id)
    select $1, $2, $3, contact_id from unnest($4::text[]) as g (contact_id)
    on conflict do nothing
    returning contact_id
)
insert into journey_arrivals (organization_id, env, journey_id, contact_id)
select $1, $2, $3, contact_id from fresh order by contact_id;

-- name: go_on
update journey_segments set after_id = $4, due_at = $5 where organization_id = $1 and env = $2 and journey_id = $3;

-- name: forget_matches
-- Of a journey that is over.
delete from journey_matches
where
    ctid = any(array(
        select ctid from journey_matches
        where organization_id = $1 and env = $2 and journey_id = $3
        order by contact_id
        limit $4
    ));

-- name: forget
delete from journey_segments where organization_id = $1 and env = $2 and journey_id = $3;
