-- Media is uploaded to a number or to a social account: one of both is there.
alter table media alter column number_id drop not null, add column social_account_id id;
