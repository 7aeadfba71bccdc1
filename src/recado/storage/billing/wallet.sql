-- Wallets are locked after everything of the messages, in the order of their ids (C25.2.2).

-- name: lock
select w.*
from unnest($1::text[], $2::text[]) as g (organization_id, env)
join wallets w on w.organization_id = g.organization_id and w.env = g.env
order by w.id
for update of w;

-- name: available
-- What could be held at this moment.
select w.organization_id, w.env, w.balance_coins - w.held_coins as available
from unnest($1::text[], $2::text[]) as g (organization_id, env)
cross join lateral (
    select * from wallets where organization_id = g.organization_id and env = g.env offset 0
) w;

-- name: write
-- Wallets that this transaction has locked, with the entries of what was charged, and the month's volumes; answers these.
with given as (
    select *
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[])
        as g (organization_id, env, balance, held, status, ledger_position)
),
changed as (
    update wallets w
    set
        balance_coins = g.balance, held_coins = g.held, status = g.status, updated_at = $7,
        ledger_position = g.ledger_position
    from given g
    where w.organization_id = g.organization_id and w.env = g.env
),
charged as (
    insert into ledger (organization_id, env, id, position, kind, coins, balance_after, channel, message_id, batch_id)
    select organization_id, env, id, position, kind, -coins, balance_after, channel, message_id, batch_id
    from unnest(
        unpack($8), unpack($9), unpack($10), unpack($11)::bigint[], unpack($12)::bigint[], unpack($13), unpack($14),
        unpack($15), unpack($20)::bigint[], unpack($21)
    ) as g (organization_id, env, id, coins, balance_after, channel, message_id, batch_id, position, kind)
)
insert into price_volumes (organization_id, family, month, units)
select organization_id::id, family, month, units -- in the order of ids everywhere, whatever the database sorts by
from unnest($16::text[], $17::text[], $18::date[], $19::bigint[]) as g (organization_id, family, month, units)
order by 1, 2, 3
on conflict (organization_id, family, month) do update set units = price_volumes.units + excluded.units
returning organization_id, family, month, units;

-- name: charged
-- Which of these messages have been charged.
select l.message_id
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, message_id)
cross join lateral (
    select message_id from ledger
    where organization_id = g.organization_id and env = g.env and message_id = g.message_id and kind = 'charge'
    offset 0
) l;

-- name: charged_only
-- What these messages have been charged, but of those of which something was adjusted since.
select c.message_id, -c.coins as coins
from unnest($1::text[], $2::text[], $3::text[]) as g (organization_id, env, message_id)
cross join lateral (
    select message_id, coins from ledger
    where organization_id = g.organization_id and env = g.env and message_id = g.message_id and kind = 'charge'
    offset 0
) c
where
    not exists (
        select from ledger
        where organization_id = g.organization_id and env = g.env and message_id = g.message_id and kind <> 'charge'
        offset 0
    );

-- name: to_verify
-- One block of wallets after (organization, environment).
select organization_id, env from wallets
where (organization_id, env) > ($1, $2)
order by organization_id, env
limit $3;

-- name: sums
-- What a wallet has, and the sum of the entries since the last verified one. Anyone who wrote an entry held the wallet until its
-- commit, so at one moment the entries up to the last are all there.
select
    w.id, w.balance_coins, w.verified_position, w.verified_coins, w.ledger_position,
    coalesce(sum(l.coins), 0)::bigint as since
from wallets w
left join ledger l on l.organization_id = w.organization_id and l.env = w.env and l.position > w.verified_position
where w.organization_id = $1 and w.env = $2
group by w.organization_id, w.env;

-- name: verified
update wallets set verified_position = $3, verified_coins = verified_coins + $4
where organization_id = $1 and env = $2 and verified_position = $5;
