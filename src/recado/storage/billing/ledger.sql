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
update wallets
set balance_coins = balance_coins + $3, status = $4, updated_at = $5, ledger_position = ledger_position + 1
where organization_id = $1 and env = $2
returning *;

-- name: insert
insert into ledger (organization_id, env, id, position, kind, coins, balance_after, description, reference)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
returning *;

-- name: by_reference
select * from ledger where organization_id = $1 and env = $2 and reference = $3;

-- name: positions
-- Of the first and the last entry of a period. Each is one look-up, whatever else is in the ledger.
select
    (
        select position from ledger
        where organization_id = $1 and env = $2 and id >= $3
        order by organization_id, env, id
        limit 1
    ) as first,
    (
        select position from ledger
        where organization_id = $1 and env = $2 and id < $4
        order by organization_id desc, env desc, id desc
        limit 1
    ) as last;

-- name: page
select * from ledger
where
    organization_id = $1 and env = $2 and position >= $3 and position < $4 and id >= $5 and id < $6
order by position desc limit $7;

-- name: page_of_charges
select * from ledger
where
    organization_id = $1 and env = $2 and position >= $3 and position < $4 and id >= $5 and id < $6
    and kind = 'charge'
order by position desc limit $7;

-- name: page_of_kind
-- Of any kind but charges, which the partial index leaves out.
select * from ledger
where
    organization_id = $1 and env = $2 and position >= $3 and position < $4 and id >= $5 and id < $6
    and kind = $8 and kind <> 'charge'
order by position desc limit $7;

-- name: page_of_message
-- Its charge has an index of its own, apart from what was adjusted after it.
select *
from (
    select * from ledger where organization_id = $1 and env = $2 and message_id = $8 and kind = 'charge'
    union all
    select * from ledger where organization_id = $1 and env = $2 and message_id = $8 and kind <> 'charge'
) l
where position >= $3 and position < $4 and id >= $5 and id < $6 and ($9::text is null or kind = $9)
order by position desc limit $7;
