-- What a dry run of a journey asks of the contacts of an audience (C9.17): a block of them in the order of their ids, those as one row
-- whom the journey does not tell apart. To be run `along_the_key` (audiences.sql).

-- name: of_segment
select c.* from contacts c
where
    c.organization_id = :organization_id and c.env = :env and c.id > :after_id and c.id < :before_id and {condition}
order by c.id limit :limit

-- name: of_list
-- Each along the primary key, whatever the planner knows: as `member` of audiences.sql.
select c.* from static_list_members m
cross join lateral (
    select * from contacts
    where organization_id = m.organization_id and env = :env and id between m.contact_id and m.contact_id
    order by id limit 1
) c
where
    m.organization_id = :organization_id and m.list_id = :list_id
    and m.contact_id > :after_id and m.contact_id < :before_id
order by m.contact_id limit :limit

-- name: of_ids
select c.* from contacts c
where c.organization_id = :organization_id and c.env = :env and c.id > :after_id and c.id = any(:ids::text[])
order by c.id limit :limit

-- name: kinds
-- `held`: what the fields hold, in order, as a JSON text; `asked`: the phones that may be registered in another spelling; `ids`: some.
-- A block ends where what it holds comes to :most_held bytes, with one contact at least; before that, where what is stored comes to
-- :most_stored, so that it is not unpacked of many contacts who are then left for later. `page_rows`: how many the whole block has.
select
    c.opt_in_status, c.phone like '+55%' as brazilian, {registered} as registered, {asked} as asked, {recent} as recent,
    c.held, count(*) as contacts, (array_agg(c.id::text order by c.id))[1:20] as ids, max(c.id) as last_id,
    max(c.page_rows) as page_rows
from (
    select c.*, sum(octet_length(c.held)) over (order by c.id rows between unbounded preceding and 1 preceding) as held_before
    from (
        select c.*, {held} as held
        from (
            select
                p.*,
                count(*) over () as page_rows,
                sum({stored}) over (order by p.id rows between unbounded preceding and 1 preceding) as stored_before
            from ({source}) p
        ) c
        where c.stored_before is null or c.stored_before < :most_stored
        offset 0
    ) c
) c
where c.held_before is null or c.held_before < :most_held
group by 1, 2, 3, 4, 5, 6

-- name: registered
-- The opt-out registry holds the phone or the address.
(
    exists (
        select from opt_outs o
        where o.organization_id = c.organization_id and o.env = c.env and o.kind = 'phone' and o.hash = c.phone_hash
    )
    or (
        c.email_key is not null
        and exists (
            select from opt_outs o
            where
                o.organization_id = c.organization_id and o.env = c.env and o.kind = 'email'
                and o.hash = sha256(convert_to(c.organization_id || ':' || c.email_key, 'UTF8'))
        )
    )
)

-- name: asked
case when c.phone not like '+55%' or c.phone like '+550%' then c.phone end

-- name: recent
-- To the hour, when journeys wrote to the contact after a moment, as `capped` counts it (execution_facts.sql); the last :most of them.
(
    select array_agg(date_trunc('hour', l.at) order by l.at)
    from (
        select s.at from execution_steps s
        where
            s.organization_id = c.organization_id and s.env = c.env and s.capped_contact_id = c.id and s.at > :recent_after
            and not exists (
                select from messages m
                where
                    m.organization_id = s.organization_id and m.env = s.env and m.channel = s.channel and m.id = s.message_id
                    and m.sent_at is null and (m.failed_at is not null or m.archived_at is not null)
                    and m.outcome_certain is not false
                offset 0
            )
        order by s.at desc limit :most
    ) l
)

-- name: addressed
-- By minutes, the recipients that count toward the tier of a number after a moment (C14.5).
select date_trunc('minute', last_at) as at, count(*) as recipients
from tier_recipients
where organization_id = :organization_id and sender_id = :number_id and last_at > :after
group by 1
