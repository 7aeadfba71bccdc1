-- When people opened an e-mail first, and clicked in it first (C10.2.9); no index names either. And how often they opened those of a campaign.
alter table messages add column opened_at timestamptz, add column clicked_at timestamptz;

alter table campaigns add column opens bigint not null default 0;
