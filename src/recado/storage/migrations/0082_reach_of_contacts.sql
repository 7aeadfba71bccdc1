-- How many registered devices a contact has: with one it is reached by push (C13.2). Counted beside the contact, so that a look at
-- all contacts needs no other table.
alter table contacts add column push_devices integer not null default 0;

update contacts c set push_devices = d.devices
from (
    select organization_id, env, contact_id, count(*) as devices from push_devices
    where status = 'registered' and contact_id is not null
    group by 1, 2, 3
) d
where c.organization_id = d.organization_id and c.env = d.env and c.id = d.contact_id;

-- As whom the provider of the chat app knows a contact, besides its phone (C28.6).
alter table contacts add column chatapp_user_id text collate "C";

create index contacts_chatapp_user on contacts (organization_id, env, chatapp_user_id) where chatapp_user_id is not null;
