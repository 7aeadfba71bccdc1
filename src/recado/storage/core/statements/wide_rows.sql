-- Pages of rows that may be wide: how much one statement brings.

-- name: bounded
-- Of a page, in its order, the first rows that come to about so many bytes, one at least. `page_rows`: how many the whole page has.
-- Nothing is unpacked to be measured.
select *
from (
    select
        p.*,
        count(*) over () as page_rows,
        sum({bytes}) over (order by {order} rows between unbounded preceding and 1 preceding) as bytes_before
    from (
        {page}
    ) p
) p
where p.bytes_before is null or p.bytes_before < {most}
order by {order}

-- name: width
-- What a column takes, as far as its stored form tells. A packed one may hold ninety times as much, and mostly holds three times.
coalesce(pg_column_size(p.{column}) * case when pg_column_compression(p.{column}) is null then 1 else 32 end, 0)
