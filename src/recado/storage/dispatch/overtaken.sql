-- What is held is walked along its index, a group and a page at a time: the rules are those at the top of dispatch.sql.

-- name: groups
-- The numbers and reasons ($5) that rows wait for, from ($1, $2, $3) on, found by skipping through the index: the cost is that
-- of the groups, not of the rows. A number that is not back ($4: the states in which it sends something) is left out with all that
-- waits for it.
with recursive found as (
    (
        select organization_id, sender_id, reason
        from dispatch
        where not_before is not null and (organization_id, sender_id, reason) >= ($1, $2, $3)
        order by organization_id, sender_id, reason
        limit 1
    )
    union all
    select next.organization_id, next.sender_id, next.reason
    from found f
    cross join lateral (
        select d.organization_id, d.sender_id, d.reason
        from dispatch d
        where
            d.not_before is not null
            and (d.organization_id, d.sender_id, d.reason) > (f.organization_id, f.sender_id, f.reason)
        order by d.organization_id, d.sender_id, d.reason
        limit 1
    ) next
)
select f.organization_id, f.sender_id, f.reason
from found f
where
    f.reason = any($5::text[])
    and (
        f.reason <> 'number_state'
        or exists (
            select from numbers n
            where n.organization_id = f.organization_id and n.id = f.sender_id and n.status = any($4::text[])
        )
    );

-- name: release
-- One page of a group, after the row $4: what waits without a moment for what is over is ready again. $5: the states in which a
-- template is waited for. Answers how many rows the page has, its last one, and how many were released.
with page as materialized (
    select id
    from dispatch
    where organization_id = $1 and sender_id = $2 and reason = $3 and id > $4 and not_before is not null
    order by id
    limit $6
),
overtaken as materialized (
    select d.id
    from dispatch d
    where
        d.organization_id = $1 and d.id = any(array(select id from page))
        and d.reason = $3 and d.not_before = 'infinity' and d.claimed_epoch is null
        and case d.reason
            when 'number_state' then exists (
                select from numbers n
                where
                    n.organization_id = d.organization_id and n.id = d.sender_id
                    and (n.status = 'connected' or (n.status = 'flagged' and d.class = 0))
            )
            when 'quality' then exists (
                select from numbers n
                where n.organization_id = d.organization_id and n.id = d.sender_id and n.quality_rating <> 'red'
            )
            when 'template_state' then not exists (
                select from templates t
                where
                    t.organization_id = d.organization_id and t.id = d.template_id and t.deleted_at is null
                    and t.status = any($5::text[])
            )
            when 'owner_paused' then
                (
                    d.source_kind <> 'batch' or not exists (
                        select from batches b
                        where
                            b.organization_id = d.organization_id and b.env = d.env and b.id = d.owner
                            and (b.status = 'paused' or (b.status = 'canceled' and b.open)) -- they are being archived
                    )
                )
                and (
                    d.source_kind <> 'journey' or (
                        select status from journeys -- by the order that only the right index has (contacts.sql)
                        where organization_id = d.organization_id and env = d.env and id >= d.owner and id <= d.owner
                        order by organization_id, env, id
                        limit 1
                    ) is distinct from 'pausada'
                    and not exists ( -- they are being archived
                        select from withdrawals w
                        where
                            w.organization_id = d.organization_id and w.env = d.env and w.kind = 'archived' and w.name = d.owner
                        offset 0
                    )
                )
            else false
        end
    for update of d skip locked
),
released as (
    update dispatch d
    set not_before = null, reason = null
    where d.organization_id = $1 and d.id = any(array(select id from overtaken))
    returning d.id
)
select
    (select count(*) from page) as rows,
    (select max(id) from page) as last,
    (select count(*) from released) as released;
