-- name: has_default
select exists (select from email_senders where organization_id = $1 and env = $2 and is_default);

-- name: no_default
update email_senders set is_default = false, updated_at = $3 where organization_id = $1 and env = $2 and is_default;

-- name: next_default
-- The oldest verified one, where there is no default any more.
update email_senders
set is_default = true, updated_at = $3
where
    organization_id = $1 and env = $2
    and id = (
        select id from email_senders where organization_id = $1 and env = $2 and status = 'verified' order by id limit 1
    );

-- name: claim_check
update email_senders set checked_at = $4
where organization_id = $1 and env = $2 and id = $3 and (checked_at is null or checked_at <= $5)
returning id;

-- name: claim_due
-- The next turn is set first: a crash only delays it.
update email_senders s
set next_check_at = $2
where s.ctid = any (
    array(
        select ctid from email_senders where next_check_at <= $1 order by next_check_at limit $3 for update skip locked
    )
)
returning s.*;

-- name: sending
-- $3: names of which each covers the address; none: the default is asked for.
select *
from email_senders
where
    organization_id = $1 and env = $2 and status = 'verified'
    and case when cardinality($3::text[]) = 0 then is_default else name_key = any($3::text[]) end
order by address is null
limit 1;
