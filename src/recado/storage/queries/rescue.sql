-- name: send_again
-- What a dead process, or a call that never came back, had in hand, where the provider answers a repeat of the same message as
-- it answered the first (C29.2): back in the queue with the delay of its attempt ($5, seconds by attempt). After the last
-- attempt it stays, to become uncertain. Reads the whole table, as `rescue` does, and as seldom.
with found as (
    update dispatch
    set
        claimed_epoch = null, claimed_at = null, reason = 'retry',
        not_before = $4::timestamptz + make_interval(secs => ($5::double precision[])[attempts])
    where
        env = $1 and channel = 'chatapp' and claimed_epoch is not null and reason is distinct from 'uncertain'
        and (claimed_epoch < $2 or claimed_at < $3)
        and attempts between 1 and cardinality($5::double precision[])
    returning organization_id, env, channel, id
),
moved as (
    update messages m
    set status = 'queued', last_error = $6, updated_at = $4
    from found f
    where
        m.organization_id = f.organization_id and m.env = f.env and m.channel = f.channel and m.id = f.id
        and m.status = any($7::text[])
    returning m.id
)
select id from moved;
