-- name: told_since
-- How many an organization had told since, and when the first of them.
select count(*) as told, min(told_at) as first from email_identities where organization_id = $1 and told_at > $2;

-- name: note
-- One that is noted already may be told again after a while: whoever tells it now may have to wait for its answer.
insert into email_identities as i (place, domain, organization_id, told_at)
values ($1, $2, $3, $4)
on conflict (place, domain) where removed_at is null do update
    set organization_id = excluded.organization_id, told_at = excluded.told_at
    where i.told_at <= $5 and (i.removing_until is null or i.removing_until <= $4)
returning id, xmax = 0 as is_new;

-- name: withdraw
delete from email_identities where id = $1;

-- name: held
-- Whether each among $2 is taken back now, or was since $4. Nobody begins to until this transaction ends.
select coalesce(removing_until > $3 or removed_at >= $4, false) as going
from email_identities
where place = $1 and domain = any($2::text[]) and (removed_at is null or removed_at >= $4)
for share;

-- name: forsake
update email_identities set remove_at = $2 where domain = any($1::text[]) and removed_at is null;

-- name: lock_due
select id
from email_identities
where remove_at <= $2 and place = $1
order by remove_at
limit $3
for update skip locked;

-- name: begin_removal
-- Of the rows that are locked. One that a sender uses, whoever that belongs to, stays.
with due as (
    select
        i.id,
        exists (
            select
            from email_senders s
            where
                s.env = 'live'
                and (
                    s.domain_backwards = reverse(i.domain)
                    or (s.domain_backwards > reverse(i.domain) || '.' and s.domain_backwards < reverse(i.domain) || '/')
                )
        ) as used
    from email_identities i
    where i.id = any($1::bigint[])
)

update email_identities i
set
    remove_at = case when due.used then null else $2::timestamptz end,
    removing_until = case when due.used then null else $3::timestamptz end
from due
where i.id = due.id
returning i.id, i.domain, i.organization_id, due.used;

-- name: removed
update email_identities set removed_at = $2, remove_at = null, removing_until = null where id = $1;

-- name: not_removed
update email_identities set removing_until = null where id = $1;

-- name: forget
delete from email_identities where removed_at <= $1;
