-- name: begin
-- A key older than its retention is as good as new; so is one whose process died before there was an answer or a row.
insert into idempotency (organization_id, env, key_hash, fingerprint, created_at, locked_until)
values ($1, $2, $3, $4, $5, $6)
on conflict (organization_id, env, key_hash) do update set
    fingerprint = excluded.fingerprint, created_at = excluded.created_at, locked_until = excluded.locked_until,
    message_id = null, subject_id = null, status = null, body = null
where idempotency.created_at <= $7 or (idempotency.message_id is null and idempotency.locked_until <= $5)
returning true

-- name: find
-- Without a status, `body` is what the committed work noted of itself.
select fingerprint, status, body, subject_id, created_at, locked_until is null and message_id is null as committed
from idempotency
where organization_id = $1 and env = $2 and key_hash = $3

-- name: note_commit
-- In the transaction of the work: a key without a lock is not free after a minute, and not to be begun again.
update idempotency set locked_until = null, body = coalesce($5, body)
where
    organization_id = $1 and env = $2 and key_hash = $3 and created_at = $4
    and status is null and message_id is null

-- name: resume
-- Of repeats that come at once one gets it: to the others it is in progress again. It stays committed.
update idempotency set created_at = $4
where
    organization_id = $1 and env = $2 and key_hash = $3 and created_at <= $5
    and status is null and message_id is null and locked_until is null
returning true

-- name: finish
-- What shows a contact is kept as long as the contact is there. Its row is held until this commit, so that a deletion at the
-- same moment finds the answer, or has gone first.
with subject as materialized (
    select from contacts where organization_id = $1 and env = $2 and id = $7::text for key share
),
kept as materialized (
    select $7::text is null or exists (select from subject) as whole
)
update idempotency i
set
    status = $5, locked_until = null, subject_id = $7::text,
    body = case when kept.whole then $6::bytea end,
    fingerprint = case when kept.whole then i.fingerprint else '' end
from kept
where
    i.organization_id = $1 and i.env = $2 and i.key_hash = $3 and i.created_at = $4
    and i.status is null and i.message_id is null

-- name: hold_keys
-- Those of these keys that are held still and without an answer, by their place: in one order for all, before anything else that their
-- transaction locks.
select g.place
from (
    select *
    from unnest($1::text[], $2::text[], $3::bytea[], $4::timestamptz[]) with ordinality
        as g (organization_id, env, key_hash, begun_at, place)
    order by place
    offset 0
) g
cross join lateral (
    select from idempotency
    where
        organization_id = g.organization_id and env = g.env and key_hash = g.key_hash and created_at = g.begun_at
        and status is null
    limit 1
    for update
) i

-- name: keep_answers
-- Of keys that this transaction holds. One that an earlier run of the same commit has kept stays as it is.
update idempotency i
set status = g.status, body = g.body, locked_until = null
from unnest($1::text[], $2::text[], $3::bytea[], $4::timestamptz[], $5::smallint[], $6::bytea[])
    as g (organization_id, env, key_hash, begun_at, status, body)
where
    i.organization_id = g.organization_id and i.env = g.env and i.key_hash = g.key_hash and i.created_at = g.begun_at
    and i.status is null and i.message_id is null

-- name: take_back
-- The moment of the hold moves on: a `finish` whose end is not known, and which may come after this, keeps nothing.
update idempotency set created_at = created_at + interval '1 microsecond', status = null, subject_id = null, body = $5
where
    organization_id = $1 and env = $2 and key_hash = $3 and created_at = $4
    and message_id is null and locked_until is null

-- name: release
delete from idempotency
where
    organization_id = $1 and env = $2 and key_hash = $3 and created_at = $4
    and status is null and message_id is null

-- name: release_uncommitted
-- Waits for a commit that is under way, whose note it then finds.
delete from idempotency
where
    organization_id = $1 and env = $2 and key_hash = $3 and created_at = $4
    and status is null and message_id is null and locked_until is not null

-- name: erase
-- Also the hash of what was asked, from which a phone can be guessed. By place, in the order of `purge`; not a key that
-- somebody began again meanwhile, after its day.
update idempotency set body = null, fingerprint = ''
where
    subject_id = $3
    and ctid = any (array(
        select ctid from idempotency
        where organization_id = $1 and env = $2 and subject_id = $3 and body is not null
    ))

-- name: purge
delete from idempotency where ctid = any (array(select ctid from idempotency where created_at <= $1 limit $2))
