-- A message has one charge, and may have several adjustments after it (C25.2): what it is carried by can change its price more than once.
-- A charge is in one index still. Reads the ledger once: some seconds for a million entries.
create unique index ledger_charge on ledger (organization_id, env, message_id) where kind = 'charge';
create index ledger_adjusted on ledger (organization_id, env, message_id) where kind <> 'charge' and message_id is not null;
drop index ledger_message;
