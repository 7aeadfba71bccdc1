-- name: take_ownership
insert into sender_owners (env, channel, account, organization_id, sender_id) values ($1, $2, $3, $4, $5)
on conflict (env, channel, account) do nothing
returning sender_id

-- name: own_holder
-- What is another organization's is not named.
select sender_id from sender_owners where env = $1 and channel = $2 and account = $3 and organization_id = $4

-- name: release_ownership
delete from sender_owners
where env = $1 and channel = $2 and account = $3 and organization_id = $4 and sender_id = $5

-- name: by_external_id
select s.* from sender_owners o
join social_accounts s on s.organization_id = o.organization_id and s.env = o.env and s.id = o.sender_id
where o.env = $1 and o.channel = $2 and o.account = $3 and s.deleted_at is null

-- name: matches
-- $3: a status; $4: a platform.
select * from social_accounts
where organization_id = $1 and env = $2 and deleted_at is null
    and ($3::text is null or status = $3) and ($4::text is null or platform = $4)

-- name: in_use
select
    exists (
        select from dispatch where organization_id = $1 and env = $2 and sender_id = $3 and not_before is null
    )
    or exists (
        select from dispatch where organization_id = $1 and env = $2 and sender_id = $3 and not_before is not null
    )
