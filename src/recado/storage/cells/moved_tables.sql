-- name: tables
-- Those of the schema, with their columns in order. `identity`: the column whose numbers the database draws. `fires`: a trigger
-- follows what is written.
select
    c.relname::text as name,
    array_agg(quote_ident(a.attname) order by a.attnum) filter (where a.attidentity = '' and a.attgenerated = '') as columns,
    max(quote_ident(a.attname)) filter (where a.attidentity <> '') as identity,
    bool_or(a.attname = 'organization_id') as owned,
    exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal) as fires
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
group by c.oid, c.relname
order by fires desc, c.relname;
