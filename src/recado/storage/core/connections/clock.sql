-- name: shown
-- What the server's clock shows: nothing is decided by it but whether ours may be believed.
select clock_timestamp();

-- name: newest
-- The newest of the ids that are later than $1 (without prefixes), of what is made most often: the last one in each index of
-- keys, and usually none.
select max(n.id collate "C")
from organizations o
cross join (values ('live'), ('test')) as e (env)
cross join lateral (
    (
        select max(m.id collate "C") as id
        from unnest($2::text[]) as c (channel)
        cross join lateral (
            select substr(id, 5) as id from messages
            where organization_id = o.id and env = e.env and channel = c.channel and id > 'msg_' || $1
            order by id desc
            limit 1
        ) m
    )
    union all
    (
        select substr(id, 5) from ledger
        where organization_id = o.id and env = e.env and id > 'led_' || $1
        order by id desc
        limit 1
    )
    union all
    (
        select substr(id, 5) from batches
        where organization_id = o.id and env = e.env and id > 'btc_' || $1
        order by id desc
        limit 1
    )
    union all
    (
        select substr(id, 5) from contacts
        where organization_id = o.id and env = e.env and id > 'cnt_' || $1
        order by id desc
        limit 1
    )
    union all
    (select substr(id, 5) from events where organization_id = o.id and id > 'evt_' || $1 order by id desc limit 1)
    union all
    (select substr(id, 5) from audit where organization_id = o.id and id > 'aud_' || $1 order by id desc limit 1)
) n;
