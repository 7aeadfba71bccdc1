-- name: open
insert into wallets (
    organization_id, env, id, status, balance_coins, held_coins, low_balance_threshold_coins, updated_at
) values ($1, $2, $3, $4, 0, 0, $5, $6);

-- name: wallet
select * from wallets where organization_id = $1 and env = $2;

-- name: wallet_locked
select * from wallets where organization_id = $1 and env = $2 for update;

-- name: set_threshold
update wallets set low_balance_threshold_coins = $3, status = $4, revision = revision + 1, updated_at = $5
where organization_id = $1 and env = $2
returning *;

-- name: change_balance
-- $6: its entry of the ledger.
update wallets
set balance_coins = balance_coins + $3, status = $4, updated_at = $5, last_entry_id = $6
where organization_id = $1 and env = $2
returning *;

-- name: insert
insert into ledger (organization_id, env, id, kind, coins, balance_after, description, reference)
values ($1, $2, $3, $4, $5, $6, $7, $8)
returning *;

-- name: by_reference
select * from ledger where organization_id = $1 and env = $2 and reference = $3;

-- name: page
select * from ledger
where organization_id = $1 and env = $2 and id >= $3 and id < $4
order by id desc limit $5;

-- name: page_of_charges
select * from ledger
where organization_id = $1 and env = $2 and id >= $3 and id < $4 and kind = 'charge'
order by id desc limit $5;

-- name: page_of_kind
-- Of any kind but charges, which the partial index leaves out.
select * from ledger
where organization_id = $1 and env = $2 and id >= $3 and id < $4 and kind = $6 and kind <> 'charge'
order by id desc limit $5;

-- name: page_of_message
select * from ledger
where organization_id = $1 and env = $2 and id >= $3 and id < $4 and message_id = $6 and ($7::text is null or kind = $7)
order by id desc limit $5;
