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

-- name: join_business_account
-- The first number of an account takes it for its organization; the row is the lock of those that come at once.
insert into business_accounts as b (env, business_account_id, organization_id, numbers) values ($1, $2, $3, 1)
on conflict (env, business_account_id) do update set numbers = b.numbers + 1
where b.organization_id = excluded.organization_id
returning numbers

-- name: leave_business_account
update business_accounts set numbers = numbers - 1
where env = $1 and business_account_id = $2 and organization_id = $3
returning numbers

-- name: free_business_account
delete from business_accounts where env = $1 and business_account_id = $2 and numbers = 0

-- name: by_provider_id
select n.* from sender_owners o
join numbers n on n.organization_id = o.organization_id and n.id = o.sender_id
where o.env = $1 and o.channel = $2 and o.account = $3 and n.deleted_at is null

-- name: of_business_account
-- Of the organization that the account belongs to, and of no other that names it.
select n.* from business_accounts b
join numbers n on n.organization_id = b.organization_id and n.env = b.env and n.business_account_id = b.business_account_id
where b.env = $1 and b.business_account_id = $2 and n.deleted_at is null
order by n.id

-- name: of_organization
-- In whichever environment: the administrator names a number by its organization.
select * from numbers where organization_id = $1 and id = $2 and deleted_at is null

-- name: matches
-- $3: a status; $4: a rating of the quality.
select * from numbers
where organization_id = $1 and env = $2 and deleted_at is null
    and ($3::text is null or status = $3) and ($4::text is null or quality_rating = $4)

-- name: counted
update numbers set limited_at = null where organization_id = $1 and id = $2 and limited_at = $3

-- name: in_use
-- Ready and held rows, each through its own index; and recipients of batches whose messages are not made yet. A resend
-- of several numbers names none: its blocks do, in the ninth of their columns (batch_rows.py).
select
    exists (
        select from dispatch where organization_id = $1 and env = $2 and sender_id = $3 and not_before is null
    )
    or exists (
        select from dispatch where organization_id = $1 and env = $2 and sender_id = $3 and not_before is not null
    )
    or exists (
        select from batches
        where open and blocks_left > 0 and organization_id = $1 and env = $2 and sender_id = $3
    )
    or exists (
        select from batches b
        join batch_blocks k on k.organization_id = b.organization_id and k.batch_id = b.id
        where
            b.open and b.organization_id = $1 and b.env = $2 and b.sender_id is null
            and case when json_typeof(k.recipients -> 8) = 'array' then (k.recipients -> 8)::jsonb ? $3 end
    )

-- name: claim_due
-- Verification and the regular refresh: anyone who takes a row sets its next turn, so that no two processes ask at once.
with due as (
    select organization_id, id from numbers
    where env = $1 and verify_at <= $2 and deleted_at is null
    order by verify_at limit $4 for update skip locked
)
update numbers n set verify_at = $3 from due
where n.organization_id = due.organization_id and n.id = due.id
returning n.*
