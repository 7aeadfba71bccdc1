-- Journeys that take in whoever comes to match a segment (C9.7): their looks, and whom each found.

-- name: begin
insert into journey_segments (organization_id, env, journey_id, segment_id, due_at) values ($1, $2, $3, $4, $5)
on conflict do nothing;

-- name: claim_due
-- Looks that are due at $1, one of an organization, of the thousands that are due for longest; the next moment is set first, so that
-- one that fails, or a crash, keeps none of the others waiting. Those of suspended organizations stay due.
with oldest as materialized (
    select organization_id, env, journey_id, due_at from journey_segments s
    where due_at <= $1 and not exists (select from organizations where id = s.organization_id and status = 'suspended')
    order by due_at
    limit 5000
),
firsts as materialized (
    select distinct on (organization_id) organization_id, env, journey_id, due_at from oldest order by organization_id, due_at
)
update journey_segments s
set due_at = $2
from (select * from firsts order by due_at limit $3) f
where s.organization_id = f.organization_id and s.env = f.env and s.journey_id = f.journey_id
returning s.*;

-- name: gone
-- Up to $7 of those who matched at the last look, of the contacts after $5 and up to $6, and match no more: all but $4.
delete from journey_matches
where
    ctid = any(array(
        select ctid from journey_matches
        where
            organization_id = $1 and env = $2 and journey_id = $3 and contact_id > $5 and contact_id <= $6
            and (contact_id in (select unnest($4::text[]))) is not true
        order by contact_id
        limit $7
    ));

-- name: saw
-- Those ($4) match: who did not match at the last look arrives.
with fresh as (
    insert into journey_matches (organization_id, env, journey_id, contact_id)
    select $1, $2, $3, contact_id from unnest($4::text[]) as g (contact_id)
    on conflict do nothing
    returning contact_id
)
insert into journey_arrivals (organization_id, env, journey_id, contact_id)
select $1, $2, $3, contact_id from fresh order by contact_id;

-- name: rest
-- A journey that a person has paused looks when it goes on: until this commit nobody activates it.
update journey_segments s
set due_at = 'infinity'
from (
    select from journeys
    where organization_id = $1 and env = $2 and id = $3 and status = 'pausada' and pausada_por is null
    for share
) j
where s.organization_id = $1 and s.env = $2 and s.journey_id = $3;

-- name: resume
update journey_segments set due_at = $4
where organization_id = $1 and env = $2 and journey_id = $3 and due_at = 'infinity';

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
