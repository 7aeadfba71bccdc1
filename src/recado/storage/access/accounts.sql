-- name: insert
insert into accounts (
    organization_id, id, name, email, email_key, role, extra_scopes, status, invited_by_id, updated_at
) values ($1, $2, $3, $4, $5, $6, $7, 'invited', $8, $9)
on conflict (email_key) do nothing
returning *

-- name: by_email
select * from accounts where email_key = $1

-- name: other_active_owner
select exists (
    select from accounts where organization_id = $1 and id <> $2 and role = 'owner' and status = 'active'
)

-- name: logged_in
update accounts set last_login_at = $2
where id = $1 and status = 'active' and password_hash = $3
returning *

-- name: put_invite
insert into account_invites (account_id, token_hash, expires_at) values ($1, $2, $3)
on conflict (account_id) do update set token_hash = excluded.token_hash, expires_at = excluded.expires_at

-- name: invited
select a.* from account_invites i join accounts a on a.id = i.account_id
where i.token_hash = $1 and i.expires_at > $2

-- name: take_invite
delete from account_invites where token_hash = $1 and expires_at > $2 returning account_id

-- name: end_invite
delete from account_invites where account_id = $1

-- name: purge_invites
delete from account_invites where expires_at < $1
