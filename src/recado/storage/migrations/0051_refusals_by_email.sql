-- Thousands of contacts may have one e-mail address: whether one of them refused, or consented, is one look-up.
drop index contacts_email;
create index contacts_email on contacts (organization_id, env, email_key, opt_in_status) where email_key is not null;
