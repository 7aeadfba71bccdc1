-- Why a message failed or was withdrawn, by its code (C15.4), and whether it is certain that it did: false after an unknown outcome,
-- until a report tells more. Null of every message that has not ended so. No index holds them. What callers read, `last_error` and
-- `original_error`, is what these are told from here, and nothing is told from it any more.
alter table messages add column failure_code text, add column outcome_certain boolean;
update messages m
set failure_code = c.code, outcome_certain = c.code <> 'outcome_unknown'
from (
    select
        organization_id, env, channel, id,
        split_part(case when last_error like 'replaced by %' then original_error else last_error end, ':', 1) as code
    from messages
    where status in ('failed', 'archived') and (failed_at is not null or archived_at is not null)
) c
where
    m.organization_id = c.organization_id and m.env = c.env and m.channel = c.channel and m.id = c.id and c.code <> '';
