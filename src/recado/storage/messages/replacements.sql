-- name: lock
-- The old messages that may still be replaced by these new ones; locked in the order of their ids until the commit. One that
-- an earlier run of the same commit had replaced is its own. $6: whether an unknown outcome may be sent again; $7: the states.
-- One by one through the key, also in partitions that were empty when the plan was made.
select m.id
from (
    select *
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[])
        as g (organization_id, env, channel, id, new_id, include_uncertain)
    order by id
    offset 0
) g
cross join lateral (
    select m.id
    from messages m
    where
        m.organization_id = g.organization_id and m.env = g.env and m.channel = g.channel and m.id = g.id
        and (
            m.replaced_by = g.new_id
            or (
                m.replaced_by is null and m.direction = 'outbound' and m.status = any($7::text[])
                and (g.include_uncertain or m.outcome_certain is not false)
            )
        )
    limit 1
    for update
) m;

-- name: replace
-- The old messages ($4: ids, in order) point to the new ones (C15.4), which $5 names by the ids of the old; $6: those that are
-- reprocessed. All are locked by this transaction. As in contact_erasures.sql, nothing is joined.
update messages
set
    replaced_by = $5::jsonb ->> id, reprocessed = reprocessed or id = any($6::text[]),
    original_error = coalesce(original_error, last_error), last_error = 'replaced by ' || ($5::jsonb ->> id), updated_at = $7
where
    organization_id = any($1::text[]) and env = any($2::text[]) and channel = any($3::text[]) and id = any($4::text[])
    and id >= ($4::text[])[1] and id <= ($4::text[])[cardinality($4::text[])]
    and replaced_by is null;

-- name: inherit
-- A new message belongs to the contact ($5) and the batch ($6) of the one that it replaces. One that is sent again after its batch
-- was canceled ($7) is counted there, but the batch does not own its row, which is therefore not withdrawn with the others. What an
-- open batch owns is a range of its own (batches.sql).
with owned as (
    update dispatch
    set
        batch_id = $6::text, source_kind = case when b.canceled then source_kind else 'batch' end,
        owner = case when b.canceled then owner else $6::text end
    from (
        select exists (
            select from batches where organization_id = $1 and env = $2 and id = $6::text and status = $7
        ) as canceled
    ) b
    where organization_id = $1 and id = $4 and $6::text is not null
    returning owner
),
ranged as (
    insert into batch_ranges (organization_id, batch_id, first_id, last_id)
    select organization_id, id, $4, $4
    from batches
    where
        organization_id = $1 and env = $2 and id = $6::text and status in ('building', 'running', 'paused')
        and exists (select from owned where owner = $6::text)
    on conflict do nothing
),
belongs as (
    update messages set batch_id = $6::text, contact_id = $5::text
    where organization_id = $1 and env = $2 and channel = $3 and id = $4
)
select owner from owned;
