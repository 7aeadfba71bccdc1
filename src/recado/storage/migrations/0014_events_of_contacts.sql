-- Events of a contact are found by its id: when it is deleted, they lose what it was given (C12.6).

create index events_contacts on events (organization_id, env, (data ->> 'id'), id) where type like 'contact.%';

-- Those of contacts that are deleted already.
insert into contact_erasures (organization_id, env, contact_id, due_at)
select distinct e.organization_id, e.env, e.data ->> 'id', now()
from events e
where
    e.type like 'contact.%' and not e.test and e.data ->> 'id' is not null
    and not exists (
        select from contacts c where c.organization_id = e.organization_id and c.env = e.env and c.id = e.data ->> 'id'
    )
on conflict do nothing;
