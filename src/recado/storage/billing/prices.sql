-- name: rows
-- Everybody's prices ($1 null), or an organization's own; those that have ended are left out.
select kind, region, tier, coins, valid_from, valid_until
from prices
where organization_id is not distinct from $1 and (valid_until is null or valid_until > $2);

-- name: volumes
-- An organization's zone, and the units that it has captured since a day.
select o.time_zone, v.family, v.month, v.units
from organizations o
left join price_volumes v on v.organization_id = o.id and v.month >= $2
where o.id = $1;
