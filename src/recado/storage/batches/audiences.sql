-- Lists and segments as audiences of batches (C15.5): contacts are read in the order of their ids, those that existed when the
-- batch was accepted.

-- name: of_list
-- How many there are, how many of them in Brazil, and how many with an e-mail address: what a batch to them would cost.
select count(*) as contacts, count(*) filter (where c.phone like '+55%') as brazilian, count(c.email) as with_email
from static_list_members m
cross join lateral ({member}) c
where m.organization_id = :organization_id and m.list_id = :list_id and m.contact_id < :before_id

-- name: of_large_list
-- The same in one look at all contacts (`all_at_once`): for a list that holds many of them.
select count(*) as contacts, count(*) filter (where c.phone like '+55%') as brazilian, count(c.email) as with_email
from static_list_members m
join contacts c on c.organization_id = m.organization_id and c.env = :env and c.id = m.contact_id
where m.organization_id = :organization_id and m.list_id = :list_id and m.contact_id < :before_id

-- name: of_segment
select count(*) as contacts, count(*) filter (where c.phone like '+55%') as brazilian, count(c.email) as with_email
from contacts c
where c.organization_id = :organization_id and c.env = :env and c.id < :before_id and {condition}

-- name: next_of_list
select c.id, c.phone, c.email
from static_list_members m
cross join lateral ({member}) c
where
    m.organization_id = :organization_id and m.list_id = :list_id
    and m.contact_id > :after_id and m.contact_id < :before_id
order by m.contact_id limit :limit

-- name: next_of_segment
select c.id, c.phone, c.email
from contacts c
where
    c.organization_id = :organization_id and c.env = :env and c.id > :after_id and c.id < :before_id and {condition}
order by c.id limit :limit

-- name: earlier_of_list
-- Which of these e-mail addresses were read already, of another contact. One look-up an address, by the index of addresses.
select g.email_key
from unnest(:email_keys::text[]) as g (email_key)
where exists (
    select
    from contacts c
    where
        c.organization_id = :organization_id and c.env = :env and c.email_key between g.email_key and g.email_key
        and c.id <= :after_id and c.id < :before_id
        and exists (
            select
            from static_list_members m
            where m.organization_id = c.organization_id and m.list_id = :list_id and m.contact_id = c.id
            offset 0
        )
    offset 0
)

-- name: earlier_of_segment
select g.email_key
from unnest(:email_keys::text[]) as g (email_key)
where exists (
    select
    from contacts c
    where
        c.organization_id = :organization_id and c.env = :env and c.email_key between g.email_key and g.email_key
        and c.id <= :after_id and c.id < :before_id and {condition}
    offset 0
)

-- name: member
-- The contact of a member of `m`, along the primary key (`along_the_key`) whatever the planner knows. Of an organization whose
-- contacts came a moment ago it thinks that there is one: it would look through all of them for each member, by any index. No
-- other index has this order, and nothing may be sorted; with an equality there would be no order.
select id, phone, email from contacts
where organization_id = m.organization_id and env = :env and id between m.contact_id and m.contact_id
order by id limit 1

-- name: along_the_key
-- Block after block is read: each begins where the last one ended, and none looks at everybody and sorts.
set local enable_sort = off;

-- name: all_at_once
-- Not one by one, however few the planner thinks that there are.
set local enable_nestloop = off;

-- name: begin
insert into batch_audiences (
    organization_id, batch_id, list_id, filter_tree, template_vars, metadata, after_id, before_id, units, details
)
values ($1, $2, $3, $4, $5::text::json, $6::text::json, '', $7, $8, $9);

-- name: of_batch
select a.*, b.channel
from batches b
join batch_audiences a on a.organization_id = b.organization_id and a.batch_id = b.id
where b.organization_id = $1 and b.env = $2 and b.id = $3 and b.status = 'building';

-- name: rolled
-- What was read is in blocks now ($5 of them). With $6 the audience has been read to its end: it is as large as what was
-- read, and a batch without blocks is through: $8 when a message was made, else $9. $7: how many get no message, by reason.
-- None: another moved the batch.
update batches b
set
    blocks_left = b.blocks_left + $5::integer - case when $6::boolean then 1 else 0 end,
    requested = case when $6 then $10::integer else b.requested end,
    status = case
        when not $6 or b.blocks_left + $5 > 1 then b.status
        when t.accepted > 0 then $8::text
        else $9::text
    end,
    finished_at = case when $6 and b.blocks_left + $5 = 1 and t.accepted = 0 then $4::timestamptz end,
    open = not ($6 and b.blocks_left + $5 = 1 and t.accepted = 0),
    updated_at = $4,
    {left_out}
from totals t
where
    b.organization_id = $1 and b.env = $2 and b.id = $3 and b.status = 'building' and b.blocks_left > 0
    and t.organization_id = $1 and t.env = $2 and t.kind = 'batch' and t.key = $3
returning b.blocks_left;

-- name: advance
update batch_audiences set after_id = $4, blocks = blocks + $5, contacts = contacts + $6
where organization_id = $1 and batch_id = $2 and after_id = $3
returning 1;

-- name: end
delete from batch_audiences where organization_id = $1 and batch_id = $2 and after_id = $3 returning 1;

-- name: keep_blocks
insert into batch_blocks (organization_id, batch_id, number, recipients)
select $1, $2, g.number, g.recipients::json
from unnest($3::integer[], $4::text[]) as g (number, recipients);

-- name: refusals
-- Which of these contacts must not be sent to at their addresses of the kind $5, and why (C12.5.4 to C12.5.6). `asks`: for nothing
-- (0), that nobody refused (1), or also for a grant where the organization wants it (2). `place`: from 1. Of an e-mail address
-- every contact that has it is asked: a refusal comes before a consent (C10.2.7). To be run `along_the_key`.
select
    g.place,
    case
        when c.id is null then 'REFERENCE_NOT_FOUND'
        when g.asks = 0 then null
        when
            c.opt_in_status = 'denied'
            or a.denied
            or exists (
                select from opt_outs o
                where
                    o.organization_id = $1 and o.env = $2 and o.kind = $5
                    and o.hash = case
                        when $5 = 'phone' then c.phone_hash else sha256(convert_to($1 || ':' || g.email_key, 'UTF8'))
                    end
            )
            then 'CONTACT_OPTED_OUT'
        when g.asks = 2 and o.require_granted_for_marketing and c.opt_in_status <> 'granted' and a.granted is not true
            then 'CONSENT_REQUIRED'
    end as reason,
    case when g.asks > 0 and $5 = 'phone' then c.phone end as asked -- for its other spellings
from unnest($3::text[], $4::smallint[], $6::text[]) with ordinality as g (id, asks, email_key, place)
left join lateral ( -- as `member`
    select id, phone, phone_hash, opt_in_status from contacts
    where organization_id = $1 and env = $2 and id between g.id and g.id
    order by id limit 1
) c on true
cross join lateral ( -- of phones nobody
    select
        {denied} as denied,
        {granted} as granted
    offset 0
) a
cross join (select require_granted_for_marketing from organizations where id = $1) o;
