-- The wallet (C25): what an environment has, what is held of it, what was charged, and what a send costs.
-- A wallet is one row that every batch of its environment changes; the ledger is written once, in the same commits.

create table wallets (
    organization_id id not null,
    env text not null,
    id id not null unique,
    status text not null, -- of the balance less what is held, against the threshold (C25.2)
    balance_coins bigint not null,
    held_coins bigint not null check (held_coins >= 0),
    low_balance_threshold_coins bigint not null check (low_balance_threshold_coins >= 0),
    verified_id id, -- the last ledger entry that the daily job has verified, and the sum of the entries up to it
    verified_coins bigint not null default 0,
    revision integer not null default 1, -- of the settings, not of the balance
    updated_at timestamptz not null,
    primary key (organization_id, env)
) with (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Kept without end. The time of creation is in the id.
create table ledger (
    organization_id id not null,
    env text not null,
    id id not null,
    kind text not null, -- topup, charge, refund, adjustment
    coins bigint not null,
    balance_after bigint not null,
    channel text,
    message_id id,
    batch_id id,
    description text,
    reference text, -- of a credit: whoever repeats it credits nothing more
    primary key (organization_id, env, id)
);
-- Finds the entries of a message, and allows one charge for each.
create unique index ledger_message on ledger (organization_id, env, message_id, kind) where message_id is not null;
create unique index ledger_reference on ledger (organization_id, env, reference) where reference is not null;
-- The few entries that are no charge, so that a list of them does not read the many that are; a charge pays nothing for it.
create index ledger_uncharged on ledger (organization_id, env, kind, id) where kind <> 'charge';

create table top_ups (
    organization_id id not null,
    env text not null,
    id id not null,
    status text not null, -- pending, paid, expired, canceled
    amount_cents bigint, -- what is to be paid; null in test, where coins cost nothing
    coins bigint not null check (coins > 0),
    payment_reference text, -- by which the payment's confirmation finds it
    created_by_id text,
    expires_at timestamptz,
    settled_at timestamptz, -- when it became paid, expired or canceled
    updated_at timestamptz not null,
    primary key (organization_id, env, id)
);
create unique index top_ups_reference on top_ups (payment_reference) where payment_reference is not null;
create index top_ups_expiry on top_ups (expires_at) where status = 'pending';

-- Coins per unit (C25.3). Regions: BR, by tier of the month's volume; INTL, tier 1 only. A row with an organization stands
-- for it before the row of everybody.
create table prices (
    organization_id id,
    kind text not null,
    region text not null,
    tier smallint not null,
    coins bigint not null check (coins >= 0),
    valid_from timestamptz not null,
    valid_until timestamptz, -- not included; null: until further notice
    unique nulls not distinct (organization_id, kind, region, tier, valid_from)
);
insert into prices (kind, region, tier, coins, valid_from)
select p.kind, 'BR', t.tier, t.coins, timestamptz '2020-01-01 00:00+00'
from (
    values
    ('sms_premium', array[1000, 900, 800, 700]),
    ('sms_otp', array[1200, 1100, 1000, 900]),
    ('sms_la_dedicada', array[1100, 1000, 900, 800]),
    ('rcs_text', array[1100, 1000, 900, 800]),
    ('rcs_other', array[1800, 1650, 1500, 1350]),
    ('rcs_otp', array[1300, 1200, 1100, 1000]),
    ('chatapp_marketing', array[4500, 4500, 4500, 4500]),
    ('chatapp_utility', array[600, 550, 500, 450]),
    ('chatapp_authentication', array[600, 550, 500, 450]),
    ('chatapp_free_form', array[100, 100, 100, 100]),
    ('chatapp_platform', array[100, 100, 100, 100]),
    ('email', array[30, 30, 30, 30]),
    ('push_simple', array[4, 4, 4, 4]),
    ('push_rich', array[8, 8, 8, 8]),
    ('push_silent', array[2, 2, 2, 2]),
    ('social', array[100, 100, 100, 100])
) as p (kind, coins)
cross join lateral unnest(p.coins) with ordinality as t (coins, tier);
insert into prices (kind, region, tier, coins, valid_from)
select kind, 'INTL', 1, coins, timestamptz '2020-01-01 00:00+00'
from (
    values
    ('sms_premium', 3500), ('sms_otp', 4200),
    ('rcs_text', 3500), ('rcs_other', 5500), ('rcs_otp', 4200),
    ('chatapp_marketing', 9000), ('chatapp_utility', 1800), ('chatapp_authentication', 2500),
    ('chatapp_free_form', 100), ('chatapp_platform', 100),
    ('email', 30), ('push_simple', 4), ('push_rich', 8), ('push_silent', 2), ('social', 100)
) as p (kind, coins);

-- Units captured in a calendar month of the organization's zone, by family of kinds (C25.3): they decide the tier. Live only.
create table price_volumes (
    organization_id id not null,
    family text not null,
    month date not null, -- its first day
    units bigint not null,
    primary key (organization_id, family, month)
) with (fillfactor = 50);

-- What a row of the queue holds of the wallet, and what it counts for when it is captured. Captured and released from here,
-- so that no settlement reads the message.
alter table dispatch
    add column coins bigint not null default 0,
    add column price_kind text, -- null: it counts for no tier
    add column campaign_id text;

alter table messages
    add column price_coins bigint, -- null: nothing is billed for it
    add column price_kind text;

-- Refuses a statement whose holds are not covered, or would move a wallet to another status: it is undone as a whole.
create function refuse_holds() returns boolean language plpgsql volatile as $$
begin
    raise exception 'holds are not covered as they are' using errcode = 'RC402';
end
$$;

-- Wallets of the organizations that exist already: empty in live, 1,000,000,000 coins in test (C2.2).
do $$
declare
    alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    millisecond bigint := floor(extract(epoch from clock_timestamp()) * 1000);
    moment_text text := '';
    tail text;
    wallet record;
begin
    for position in 1..8 loop
        moment_text := substr(alphabet, (millisecond % 62)::integer + 1, 1) || moment_text;
        millisecond := millisecond / 62;
    end loop;
    for wallet in
        select o.id, e.env
        from organizations o
        cross join (values ('live'), ('test')) as e (env)
    loop
        select string_agg(substr(alphabet, floor(random() * 62)::integer + 1, 1), '') into tail from generate_series(1, 13);
        insert into wallets (
            organization_id, env, id, status, balance_coins, held_coins, low_balance_threshold_coins, updated_at
        )
        values (
            wallet.id, wallet.env, 'wal_' || moment_text || tail,
            case wallet.env when 'test' then 'ok' else 'depleted' end,
            case wallet.env when 'test' then 1000000000 else 0 end, 0, 100000, now()
        );
        if wallet.env = 'test' then
            insert into ledger (organization_id, env, id, kind, coins, balance_after, description)
            values (wallet.id, 'test', 'led_' || moment_text || tail, 'topup', 1000000000, 1000000000, 'sandbox coins');
        end if;
    end loop;
end
$$;
