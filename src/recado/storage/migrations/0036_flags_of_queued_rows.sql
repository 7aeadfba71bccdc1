-- What a queued message obeys until it leaves, decided when it is made: nothing is told from its type, or from what its template has
-- become. That it is subject to consent is told by its consent_hash.
alter table dispatch
    add column needs_window boolean not null default false, -- it leaves only while the recipient's window is open (C15.2.2)
    add column obeys_quiet_hours boolean not null default false; -- it waits for their end (C14.5)
update dispatch d
set
    needs_window = m.type <> 'template',
    obeys_quiet_hours = m.type = 'template' and (d.class = 2 or d.consent_hash is not null)
from messages m
where m.organization_id = d.organization_id and m.env = d.env and m.channel = d.channel and m.id = d.id;
