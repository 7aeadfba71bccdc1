-- Lists of the executions of a journey, newest first (C9.10).

-- name: page
-- Of those between two ids, without the first, what is still kept.
select e.* from executions e
where
    {found}
    {conditions}
    and coalesce(e.ended_at, 'infinity') >= :kept_from
order by e.id desc
limit :limit

-- name: reach
-- The last of those that a page looks at; none where there are fewer.
select e.id from executions e
where
    {found}
order by e.id desc
limit 1 offset :most - 1

-- name: of_journey
-- By the key, or by an index in its order that holds fewer.
e.organization_id = :organization_id and e.env = :env and e.journey_id = :journey_id
and e.id >= :first_id and e.id < :before_id

-- name: of_contact
-- The journey is compared so that the key cannot serve: a contact has few executions, and a journey a million.
e.organization_id = :organization_id and e.env = :env and e.contact_id = :contact_id
and e.id >= :first_id and e.id < :before_id

-- name: if_active
and e.status = 'ativa'

-- name: if_ended
and e.status <> 'ativa' and e.status = :status

-- name: if_journey
and e.journey_id || '' = :journey_id

-- name: if_step
and e.step_id = :step_id

-- name: if_test
and e.teste

-- name: if_no_test
and not e.teste
