-- Pages of a static list without other filters, newest members first.

-- name: page
-- In one snapshot: the list, the milestones on the way to the page, the members after the last of these, their contacts. The
-- index of the members alone says whom to skip; a member is a contact of the list's environment.
-- Parameters: $3 list; $5 and $6 rank and id of the member to begin after, if the list is still of the version $4, or whatever it
-- is for null; $7 how many to skip; $8 how many to show; $9 members from one milestone to the next.
-- `version`: which transaction wrote the list's row, and where. Every commit that changes members writes it again (lists.sql), so
-- the members are the same while it is; a server that took over, and may lack commits, was started at another moment.
-- The milestones that were passed come with the first row alone, which has no contact when the page is empty.
with recursive list as materialized (
    select size, concat_ws(' ', xmin, ctid, pg_postmaster_start_time()) as version
    from static_lists
    where organization_id = $1 and env = $2 and id = $3
),
passed as (
    select case when known then $5::integer else 0 end as rank, case when known then $6 else '~' end::id as id
    from (select coalesce(version = $4::text, true) as known from list) l
    union all
    select p.rank + $9::integer, m.contact_id
    from passed p
    cross join lateral (
        select contact_id from static_list_members
        where organization_id = $1 and list_id = $3 and contact_id < p.id
        order by contact_id desc
        limit 1 offset $9::integer - 1
    ) m
    where p.rank + $9::integer <= $7
),
found as (
    select m.contact_id as id
    from (select rank, id from passed order by rank desc limit 1) p
    cross join lateral (
        select contact_id from static_list_members
        where organization_id = $1 and list_id = $3 and contact_id < p.id
        order by contact_id desc
        limit $8 offset $7::integer - p.rank
    ) m
)
select
    l.size,
    l.version,
    case
        when c.id is not distinct from (select max(id) from found) then array(select id from passed order by rank offset 1)
    end as milestones,
    c.*
from list l
left join (
    found f
    join contacts c on c.organization_id = $1 and c.env = $2 and c.id = f.id
) on true
order by c.id desc
