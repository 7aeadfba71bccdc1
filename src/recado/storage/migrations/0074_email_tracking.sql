-- When people opened an e-mail first, and clicked in it first (C10.2.9); no index names either. And how often they opened those of a campaign.
alter table messages add column opened_at timestamptz, add column clicked_at timestamptz;

alter table campaigns add column opens bigint not null default 0;

-- To a journey, an e-mail that was opened is one that was read (C9.6).
create trigger opens_of_journeys after update of opened_at on messages
for each row when (new.journey_id is not null and old.opened_at is null and new.opened_at is not null)
execute function message_signals();
