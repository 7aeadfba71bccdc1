-- name: page
-- `found` is one of the sources below: only ids are sorted and skipped, whole rows are read for one page.
with found as (
    {found}
    limit :limit offset :skip
)
select c.*
from found f
join contacts c on c.organization_id = :organization_id and c.env = :env and c.id = f.id
{order}

-- name: walk
-- In the order of the list, along an index that has it.
select c.id
from contacts c
where
    c.organization_id = :organization_id and c.env = :env
    {conditions}
    {start}
{order}

-- name: searched
-- What a search finds through its index, counted up to 10,001, and a page of it, sorted. When there are more than 10,000, only
-- the count is of use: the page may lack what comes first. A row without a contact tells the count of an empty page.
with matched as materialized (
    select c.id, c.updated_at
    from contacts c
    where
        c.organization_id = :organization_id and c.env = :env
        {search}
        {conditions}
    limit 10001
),
found as (
    select c.id
    from matched c
    where
        true
        {start}
    {order}
    limit :limit offset :skip
)
select t.total, c.*
from (select count(*) as total from matched) t
left join (
    found f
    join contacts c on c.organization_id = :organization_id and c.env = :env and c.id = f.id
) on true
{order}

-- name: along
-- Many match the search: met along the order of the list. `is true` keeps the index of the search out of it, which would
-- find them all first.
select c.id
from contacts c
where
    c.organization_id = :organization_id and c.env = :env
    and (true {search}) is true
    {conditions}
    {start}
{order}

-- name: members
-- By the list and other filters: its members in the order of their ids. Without others, see list_pages.sql.
select c.id, c.updated_at
from static_list_members m
join contacts c on c.organization_id = m.organization_id and c.env = :env and c.id = m.contact_id
where
    m.organization_id = :organization_id and m.list_id = :list_id
    {search}
    {conditions}
    {start}
{order}

-- name: count
select count(*)
from (
    select
    from contacts c
    where
        c.organization_id = :organization_id and c.env = :env
        {search}
        {conditions}
    limit 10001
) matches

-- name: count_members
select count(*)
from (
    select
    from static_list_members m
    join contacts c on c.organization_id = m.organization_id and c.env = :env and c.id = m.contact_id
    where
        m.organization_id = :organization_id and m.list_id = :list_id
        {search}
        {conditions}
    limit 10001
) matches

-- name: newest
order by c.id desc

-- name: changed
order by c.updated_at, c.id

-- name: after_newest
and c.id < :after_id

-- name: after_member
-- Said of the member as well: the page begins in the middle of its index, too.
and m.contact_id < :after_id

-- name: after_changed
and (c.updated_at, c.id) > (:after_at, :after_id)

-- name: if_tag
and c.tag_keys @> array[:tag::text]

-- name: if_opt_in_status
and c.opt_in_status = :opt_in_status

-- name: if_source
and c.source = :source

-- name: if_external_id
and c.external_id = :external_id

-- name: if_company_id
and c.company_id = :company_id

-- name: if_updated_since
and c.updated_at >= :updated_since

-- name: if_cpf_index
and c.cpf_index = :document

-- name: if_cnpj_index
and c.cnpj_index = :document

-- name: inside
-- Which words the server finds inside words. The trigrams of pg_trgm know the letters of the database's character type: in `C`
-- those of ASCII. An index that is still being made, or whose making failed, is not valid.
select case when d.datctype in ('C', 'POSIX') then 'ascii' else 'all' end
from pg_index i
join pg_database d on d.datname = current_database()
where i.indexrelid = to_regclass('contacts_search_inside') and i.indisvalid

-- name: if_begins
c.search @@ :query::text::tsquery

-- name: if_inside
c.search::text ~ :expression::text
