-- The entries of a wallet count from 1, in the order in which they changed its balance: given under the wallet's lock, without a
-- gap, whatever the clock shows that their ids are made by. Entries from before are counted in the order of their ids.
-- Rewrites the ledger: about ten seconds for a million entries.
alter table ledger add column position bigint;
update ledger l
set position = n.position
from (
    select ctid as place, row_number() over (partition by organization_id, env order by id) as position from ledger
) n
where l.ctid = n.place;
alter table ledger alter column position set not null;
create unique index ledger_position on ledger (organization_id, env, position);
drop index ledger_uncharged;
create index ledger_uncharged on ledger (organization_id, env, kind, position) where kind <> 'charge';

alter table wallets
    add column ledger_position bigint not null default 0, -- of the last entry
    add column verified_position bigint not null default 0; -- up to which `verified_coins` is the sum
update wallets w
set
    ledger_position = coalesce(
        (
            select position from ledger
            where organization_id = w.organization_id and env = w.env
            order by position desc
            limit 1
        ), 0
    ),
    verified_position = coalesce(
        (select position from ledger where organization_id = w.organization_id and env = w.env and id = w.verified_id), 0
    );
alter table wallets drop column last_entry_id, drop column verified_id;
