-- Queued messages follow their journey (C9.12): what of it stood still when, and which rows of the queue are its own.
alter table journeys add column pausas timestamptz[] not null default '{}'; -- begin and end of its last pauses, one after the other

-- A case, which nobody else asks for: those who look for some that are paused have indexes of their own.
create index journeys_stood_still on journeys (updated_at) where case status when 'pausada' then true else pausas <> '{}' end;

-- Versions whose place another took are archived when no execution of them is under way (C9.11.3).
create index journeys_superseded on journeys (organization_id, env, id) where entradas_encerradas and status = 'ativa';

create index dispatch_of_journeys on dispatch (organization_id, owner, sender_id, id) where source_kind = 'journey';
