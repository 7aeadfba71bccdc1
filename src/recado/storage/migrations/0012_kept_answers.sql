-- Answers that are kept for an Idempotency-Key and show a contact: they are emptied in the commit that deletes it (C12.6).

alter table idempotency add column subject_id id; -- the contact that the answer shows
create index idempotency_subjects on idempotency (organization_id, env, subject_id) where subject_id is not null;

-- Those that are kept already are JSON as this program wrote it: a contact begins with its id, a message names its contact.
with kept as (
    select organization_id, env, key_hash, convert_from(body, 'UTF8') as answer from idempotency where body is not null
),
showing as (
    select
        organization_id, env, key_hash,
        coalesce(
            substring(answer from '^\{"body":\{"id":"(cnt_[0-9A-Za-z]{21})"'),
            substring(answer from '^\{"body":\{"id":"msg_.*?"contactId":"(cnt_[0-9A-Za-z]{21})"')
        ) as subject_id
    from kept
)
update idempotency i set subject_id = s.subject_id
from showing s
where
    s.subject_id is not null
    and i.organization_id = s.organization_id and i.env = s.env and i.key_hash = s.key_hash;

update idempotency i set body = null, fingerprint = ''
where
    subject_id is not null
    and not exists (
        select from contacts c where c.organization_id = i.organization_id and c.env = i.env and c.id = i.subject_id
    );
