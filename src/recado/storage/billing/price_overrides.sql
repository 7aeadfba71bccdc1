-- name: in_force
select kind, region, tier, coins from prices
where organization_id = $1 and valid_from <= $2 and (valid_until is null or valid_until > $2)
order by kind, region, tier;

-- name: end_all
update prices set valid_until = $2
where organization_id = $1 and (valid_until is null or valid_until > $2);

-- name: insert
insert into prices (organization_id, kind, region, tier, coins, valid_from)
select $1, kind, region, tier, coins, $2
from unnest($3::text[], $4::text[], $5::smallint[], $6::bigint[]) as g (kind, region, tier, coins)
on conflict (organization_id, kind, region, tier, valid_from) do update set coins = excluded.coins, valid_until = null;
