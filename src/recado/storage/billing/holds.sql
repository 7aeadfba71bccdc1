-- Parts of the statements that store messages (`holds.py`).

-- name: held
-- The prices of what was `queued` are held when `{wanted}`: all of them, or the statement is refused and undone. So it is when
-- a wallet would change its status by it, of which an event would have to tell.
needed as (
    select organization_id, env, sum(coins)::bigint as coins
    from queued
    where coins > 0 and {wanted}::boolean
    group by 1, 2
),
locked as (
    select w.id, n.coins
    from needed n
    join wallets w on w.organization_id = n.organization_id and w.env = n.env
    order by w.id
    for update of w
),
held as (
    update wallets w
    set held_coins = w.held_coins + l.coins, updated_at = {at}
    from locked l
    where
        w.id = l.id and w.balance_coins - w.held_coins - l.coins > 0
        and (w.status <> 'ok' or w.balance_coins - w.held_coins - l.coins >= w.low_balance_threshold_coins)
    returning w.id
)

-- name: refused
select null where case when (select count(*) from needed) <> (select count(*) from held) then refuse_holds() end;
