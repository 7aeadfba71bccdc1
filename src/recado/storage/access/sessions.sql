-- name: insert
insert into sessions (id, organization_id, account_id, live_hash, test_hash, expires_at, last_used_at)
values ($1, $2, $3, $4, $5, $6, $7)

-- name: by_token_hash
select
    a.*, s.id as session_id, s.live_hash, s.expires_at, s.last_used_at, s.ended_at,
    o.status = 'suspended' as organization_suspended, o.moving as organization_moving, o.hide_phone_hash
from sessions s
join accounts a on a.id = s.account_id
join organizations o on o.id = s.organization_id
where s.live_hash = $1 or s.test_hash = $1

-- name: end_one
update sessions set ended_at = $2 where (live_hash = $1 or test_hash = $1) and ended_at is null returning account_id

-- name: end_of_account
-- Sessions are locked in the order of their ids here and in `touch`: no two transactions wait for each other.
with locked as materialized (
    select id from sessions where account_id = $1 and ended_at is null order by id for update
)
update sessions s set ended_at = $2 from locked l where s.id = l.id

-- name: touch
with locked as materialized (
    select s.id, used.at
    from unnest($1::text[], $2::timestamptz[]) as used (id, at)
    join sessions s on s.id = used.id
    where s.last_used_at < used.at
    order by s.id
    for update of s
)
update sessions s set last_used_at = l.at from locked l where s.id = l.id

-- name: purge
delete from sessions where expires_at < $1

-- name: begin_attempt
-- Counted before the password is looked at, so that guesses made at once are counted too; success forgets them.
insert into login_attempts as l (email_hash, failures, last_at) values ($1, 1, $2)
on conflict (email_hash) do update set
    failures = case when l.last_at <= $3 then 1 else least(l.failures + 1, $4 + 1) end,
    last_at = case when l.last_at > $3 and l.failures >= $4 then l.last_at else $2 end
returning failures, last_at

-- name: settle_attempt
update login_attempts set last_at = greatest(last_at, $2) where email_hash = $1

-- name: withdraw_attempt
update login_attempts set failures = greatest(failures - 1, 0) where email_hash = $1

-- name: forget_attempts
delete from login_attempts where email_hash = $1

-- name: purge_attempts
delete from login_attempts where last_at < $1
