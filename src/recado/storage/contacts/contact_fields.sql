-- name: of_environment
select key, type, uses from contact_fields
where organization_id = $1 and env = $2
order by uses desc, key
limit $3;

-- name: stale
-- Environments in which a contact changed after its keys were counted, or so shortly before that it may not have been committed
-- then: `counted_at` is that much earlier. What a deletion takes away is noticed with the next
-- change.
with recursive environments as (
    (select organization_id, env from contacts order by organization_id, env limit 1)
    union all
    select next.organization_id, next.env
    from environments e
    cross join lateral (
        select c.organization_id, c.env
        from contacts c
        where (c.organization_id, c.env) > (e.organization_id, e.env)
        order by c.organization_id, c.env
        limit 1
    ) next
)
select e.organization_id, e.env
from environments e
left join contact_field_counts n on n.organization_id = e.organization_id and n.env = e.env
where
    n.counted_at is null
    or exists (
        select from contacts c
        where c.organization_id = e.organization_id and c.env = e.env and c.updated_at > n.counted_at
    );

-- name: forget
delete from contact_fields where organization_id = $1 and env = $2;

-- name: count
-- A null says nothing of its key's type.
insert into contact_fields (organization_id, env, key, type, uses)
select
    c.organization_id, c.env, a.key,
    case
        when count(distinct k.type) > 1 then 'mixed'
        else coalesce(max(k.type), 'text')
    end,
    count(*)
from contacts c
cross join lateral jsonb_each(c.attributes) a
cross join lateral (
    select case jsonb_typeof(a.value) when 'string' then 'text' when 'array' then 'list' when 'null' then null
        else jsonb_typeof(a.value) end as type
) k
where c.organization_id = $1 and c.env = $2
group by c.organization_id, c.env, a.key;

-- name: counted
insert into contact_field_counts (organization_id, env, counted_at) values ($1, $2, $3)
on conflict (organization_id, env) do update set counted_at = excluded.counted_at;
