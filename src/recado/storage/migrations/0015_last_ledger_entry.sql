-- The last entry of each wallet's ledger, known under the wallet's lock: an entry whose id was minted before the lock was
-- had is written only when no other was faster, so that the order of the entries is that of their balances.
alter table wallets add column last_entry_id id not null default '';

update wallets w
set last_entry_id = l.id
from (
    select w.organization_id, w.env, last.id
    from wallets w
    cross join lateral (
        select id from ledger where organization_id = w.organization_id and env = w.env order by id desc limit 1
    ) last
) l
where w.organization_id = l.organization_id and w.env = l.env;
