-- name: lock_account
-- The account's row is the lock: of calls at once, each counts those before it.
select from accounts where organization_id = $1 and id = $2 for no key update

-- name: forget_older
delete from document_reveals where organization_id = $1 and account_id = $2 and id < $3

-- name: newest
select id from document_reveals where organization_id = $1 and account_id = $2 order by id desc limit $3

-- name: insert
insert into document_reveals (organization_id, account_id, id) values ($1, $2, $3)
