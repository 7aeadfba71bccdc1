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
