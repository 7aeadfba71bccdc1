-- Of any table with encrypted values; the braces are filled with names from the program's own list of places. Rows are read in
-- the order of their key, block by block. A value is written back only where it is still the one that was read.

-- name: stale
not starts_with({column}, $1)

-- name: stale_history
jsonb_path_exists({column}, '$[*].answerCipher ? (!(@ starts with $prefix))', jsonb_build_object('prefix', $1::text))

-- name: stale_member
not starts_with({column} ->> 'sealed', $1)

-- name: count
select count(*) from {table} where {stale}

-- name: block
select {keys}, {column} as stored from {table}
where {stale} and ({keys}) > ({after})
order by {keys}
limit {limit}

-- name: write
update {table} t set {column} = new.fresh
from (select * from unnest({arrays}) as given ({keys}, stored, fresh)) new
where {same} and t.{column}{compared} = new.stored{compared}
