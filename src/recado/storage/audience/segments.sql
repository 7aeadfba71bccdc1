-- Segments (C13): their records, and the fragments from which the conditions of a filter are put together. A fragment names
-- its values; they travel as parameters only. Each is true or false for every contact, never null, so that `not` and the
-- negative operators include contacts that have no value.

-- name: matches
-- $3: a part of the name.
select * from segments
where organization_id = $1 and env = $2 and ($3::text is null or strpos(name_key, $3) > 0);

-- name: claim_due
-- Segments whose size is looked at again now; the next look is set first, so that one that cannot be evaluated, or a crash,
-- keeps none of the others waiting. One of an organization, of the thousands that are due for longest: so that the filters of
-- one organization, however many and slow, do not come before those of all others. Of the organizations in $4 none.
with oldest as materialized (
    select organization_id, ctid as place, due_at from segments
    where due_at <= $1 and organization_id <> all($4::text[])
    order by due_at limit 5000
),
firsts as materialized (
    select distinct on (organization_id) place, due_at from oldest order by organization_id, due_at
)
update segments s
set due_at = $2
where s.ctid = any (array(select place from firsts order by due_at limit $3)) and s.due_at <= $1
returning s.*;

-- name: note_size
-- What was counted for a revision that is still the one.
update segments set size = $5, size_at = $6, due_at = $7
where organization_id = $1 and env = $2 and id = $3 and revision = $4;

-- name: plan_with_values
-- A plan for any values would fold the case of each of them again for each contact.
set local plan_cache_mode = force_custom_plan;

-- name: count
select count(*) from contacts c
where c.organization_id = :organization_id and c.env = :env and {condition}

-- name: look_at_everybody
-- In the order of the table and shared among processes. Along the order of an index each contact would be fetched by itself,
-- which the planner thinks cheap.
set local enable_indexscan = off;
set local parallel_tuple_cost = 0;

-- name: newest
-- Who matches of the newest contacts. With those who match often found, nobody looks further; for the others see `everybody`.
select c.id
from (
    select * from contacts
    where organization_id = :organization_id and env = :env
    order by id desc limit :newest
) c
where {condition}
order by c.id desc limit :limit

-- name: everybody
-- How many match, and the newest of them, in one look at all.
select c.id, count(*) over () as count from contacts c
where c.organization_id = :organization_id and c.env = :env and {condition}
order by c.id desc limit :limit

-- name: contacts
-- One page of those that match, newest first, before a contact.
select c.* from contacts c
where c.organization_id = :organization_id and c.env = :env and c.id < :before_id and {condition}
order by c.id desc limit :limit

-- name: tag_any
c.tag_keys && :values::text[]

-- name: tag_exists
c.tag_keys <> '{}'

-- name: attribute_texts
-- One of the values is the text or an element of the list, without case. JSON in lower case is JSON still. There is no
-- subquery here or below: with one, the server would not share the work among processes. Taking a value out of the document is
-- most of the work, so what its text cannot be is told by the text, and its type is looked at afterwards.
case
    when lower(c.attributes ->> :key::text) = any (array[{values}]) then jsonb_typeof(c.attributes -> :key::text) = 'string'
    when c.attributes ->> :key::text like '[%' then
        case jsonb_typeof(c.attributes -> :key::text)
            when 'array' then lower(c.attributes ->> :key::text)::jsonb ?| array[{values}]
            else false
        end
    else false
end

-- name: attribute_scalars
-- One of the numbers or truth values is the value: 1 is 1.0.
case
    when jsonb_typeof(c.attributes -> :key::text) in ('number', 'boolean')
        then :values::jsonb @> jsonb_build_array(c.attributes -> :key::text)
    else false
end

-- name: attribute_contains
-- A list is looked at only when its JSON holds the part at all. That is enough for a `plain` part, which no punctuation between
-- elements can hold, unless the list has escapes; else it is looked at element by element.
case
    when
        strpos(lower(c.attributes ->> :key::text), lower(:quoted::text)) > 0
        or (not :plain::boolean and strpos(lower(c.attributes ->> :key::text), lower(:value::text)) > 0)
    then
        case jsonb_typeof(c.attributes -> :key::text)
            when 'string' then strpos(lower(c.attributes ->> :key::text), lower(:value::text)) > 0
            when 'array' then
                (:plain::boolean and strpos(c.attributes ->> :key::text, '\') = 0)
                or list_contains(c.attributes -> :key::text, :value::text)
            else false
        end
    else false
end

-- name: attribute_number
-- The path names the key and compares: `strict $."age" ? (@ > 80)`. Nothing else than a number is comparable to one.
coalesce(c.attributes @? :path::text::jsonpath, false)

-- name: attribute_date
-- Dates are compared as text, and only with what begins like one.
case jsonb_typeof(c.attributes -> :key::text)
    when 'string' then
        (c.attributes ->> :key::text) collate "C" {comparison} :value::text and begins_with_date(c.attributes ->> :key::text)
    when 'array' then list_has_date(c.attributes -> :key::text, '{comparison}', :value::text)
    else false
end

-- name: attribute_exists
-- An empty text or list counts as no value.
coalesce(c.attributes -> :key::text not in ('null'::jsonb, '""'::jsonb, '[]'::jsonb), false)

-- name: opt_in
c.opt_in_status = any (:values::text[])

-- name: interaction_before
coalesce(c.last_interaction_at < :value::timestamptz, false)

-- name: interaction_after
coalesce(c.last_interaction_at > :value::timestamptz, false)

-- name: interaction_since
coalesce(c.last_interaction_at >= :value::timestamptz, false)

-- name: interaction_exists
c.last_interaction_at is not null

-- name: reachable_by_phone
-- On one of these channels, as far as providers have told.
not (:values::text[] <@ c.unreachable)

-- name: reachable_by_email
c.email_key is not null

-- name: reachable_by_social
c.social_identities <> '{}'

-- name: reachable_by_push
-- Of registered devices, which the commits count that change them.
c.push_devices > 0
