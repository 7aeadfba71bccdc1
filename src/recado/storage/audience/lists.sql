-- Static lists (C7). See dispatch.sql on how batched statements find their rows. Anyone who changes the members of a list has
-- locked its row before, in a statement of its own: what it reads after that includes all that others have committed. And it
-- writes that row, also when the size stays: pages go by it (list_pages.sql).

-- name: matches
-- $3: a part of the name.
select * from static_lists
where organization_id = $1 and env = $2 and ($3::text is null or strpos(name_key, $3) > 0);

-- name: delete
with gone as (
    delete from static_list_members where organization_id = $1 and list_id = $3
)
delete from static_lists where organization_id = $1 and env = $2 and id = $3;

-- name: in_bulk
-- Planned for these very identifiers and for the tables as they are now: a plan that was made when nobody was there would read
-- all contacts of an organization for each of them. And room to sort and hash fifty thousand without a file.
set local plan_cache_mode = force_custom_plan;
set local work_mem = '32MB';

-- name: resolved
-- Which contacts are named, each once. Columns: ids and phones packed (`rows.py`), external ids as a JSON text. They are looked up
-- as one array each, which walks an index from leaf to leaf, where a join would descend it for each identifier; an empty one
-- is not looked up at all. The order of the ids is that of the one index which is meant for them.
with by_id as materialized (
    select id from contacts
    where $3::text <> '' and organization_id = $1 and env = $2 and id = any (unpack($3))
    order by id
),
by_phone as materialized (
    select id, phone from contacts
    where $4::text <> '' and organization_id = $1 and env = $2 and phone = any (unpack($4))
),
by_external_id as materialized (
    select id, external_id from contacts
    where $5::text <> '[]' and organization_id = $1 and env = $2
        and external_id = any (array(select jsonb_array_elements_text($5::text::jsonb)))
),
found as (
    select id from by_id
    union
    select id from by_phone
    union
    select id from by_external_id
),
present as materialized (
    select contact_id from static_list_members
    where organization_id = $1 and list_id = $6 and contact_id = any (array(select id from found))
)

-- name: add
-- Nobody else makes members of this list meanwhile: who is not present is not there either, and an `on conflict` would make
-- each row half as dear again.
,
added as (
    insert into static_list_members (organization_id, list_id, contact_id, added_at)
    select $1, $6, id, $7 from found where (id in (select contact_id from present)) is not true order by id
    returning 1
),
removed as (
    select 1 where false
)

-- name: replace
-- A hashed `not in`, because these statements run without hash joins.
,
removed as (
    delete from static_list_members m
    where m.organization_id = $1 and m.list_id = $6 and m.contact_id not in (select id from found)
    returning 1
),
added as (
    insert into static_list_members (organization_id, list_id, contact_id, added_at)
    select $1, $6, id, $7 from found where (id in (select contact_id from present)) is not true order by id
    returning 1
)

-- name: remove
-- Nobody joins; the moment is named because each of these statements has the same parameters.
,
added as (
    select 1 where $7::timestamptz is null
),
removed as (
    delete from static_list_members
    where organization_id = $1 and list_id = $6 and contact_id = any (array(select id from found))
    returning 1
)

-- name: outcome
-- What was changed; and of each kind of identifiers how many a contact has, and the places of the first hundred that none has.
,
counted as (
    update static_lists
    set size = size + (select count(*) from added) - (select count(*) from removed)
    where organization_id = $1 and env = $2 and id = $6
    returning size
),
known as (
    select 'contact_ids' as kind, id::text collate "C" as key from by_id
    union all
    select 'phones', phone from by_phone
    union all
    select 'external_ids', external_id from by_external_id
),
kinds as (
    select
        k.kind,
        (select count(*) from known where kind = k.kind) as found,
        array(
            select g.place from unnest(k.keys) with ordinality as g (key, place)
            where ((k.kind, g.key) in (select kind, key from known)) is not true
            order by g.place limit $8
        ) as missing
    from (values ('contact_ids', unpack($3)), ('phones', unpack($4)), ('external_ids', array(select jsonb_array_elements_text($5::text::jsonb)))) as k (kind, keys)
)
select
    (select count(*) from found) as matched,
    (select count(*) from added) as added,
    (select count(*) from removed) as removed,
    (select size from counted) as total,
    (select jsonb_object_agg(kind, jsonb_build_object('found', found, 'missing', missing)) from kinds) as kinds;

-- name: join
-- Contacts that the caller knows become members: of an import.
with added as (
    insert into static_list_members (organization_id, list_id, contact_id, added_at)
    select $1, $3, g.id, $5 from unnest($4::text[]) as g (id) order by g.id
    on conflict do nothing
    returning 1
)
update static_lists set size = size + (select count(*) from added)
where organization_id = $1 and env = $2 and id = $3
returning size;

-- name: lock_all
-- Every list of an environment, in one order for all: who removes contacts waits for those who add them.
select id from static_lists where organization_id = $1 and env = $2 order by id for no key update;

-- name: leave
-- Contacts leave every list of the environment.
with gone as (
    delete from static_list_members m
    using (
        select k.place
        from unnest($3::text[]) as l (id)
        cross join unnest($4::text[]) as g (contact_id)
        cross join lateral (
            select ctid as place from static_list_members
            where organization_id = $1 and list_id = l.id and contact_id = g.contact_id
            offset 0
        ) k
    ) q
    where m.ctid = q.place
    returning m.list_id
)
update static_lists l set size = l.size - n.count
from (select list_id, count(*)::integer as count from gone group by 1) n
where l.organization_id = $1 and l.env = $2 and l.id = n.list_id;
