-- Whether phoneHash is left out for credentials without pii:full (C2.5, C24.1).

alter table organizations add column hide_phone_hash boolean not null default false;
