-- Domains that a provider of e-mail was told of by us, and which are taken back there with their last sender (C10.4).
create table email_identities (
    id bigint generated always as identity primary key,
    place text not null, -- the account at the provider
    domain text collate "C" not null,
    organization_id id not null, -- for which it was told last
    told_at timestamptz not null,
    remove_at timestamptz, -- when it is taken back, unless a sender uses it then
    removing_until timestamptz, -- a call that takes it back may be under way
    removed_at timestamptz -- such a row is only counted, for a day
);

create unique index email_identities_there on email_identities (place, domain) where removed_at is null;
create index email_identities_by_domain on email_identities (domain);
create index email_identities_by_organization on email_identities (organization_id, told_at);
create index email_identities_by_removal on email_identities (remove_at) where remove_at is not null;
create index email_identities_removed on email_identities (removed_at) where removed_at is not null;

-- The domain that a sender leaves from, backwards: those under another one are a range.
alter table email_senders add column domain_backwards text collate "C" generated always as (
    reverse(rtrim(substring(name_key from '[^@]*$'), '.'))
) stored;
create index email_senders_by_domain on email_senders (domain_backwards) where env = 'live';
