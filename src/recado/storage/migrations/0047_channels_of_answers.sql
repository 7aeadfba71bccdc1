-- On which channel a person opted out, and is answered (C28.3).
alter table opt_out_replies add column channel text not null default 'chatapp';
alter table opt_out_replies alter column channel drop default;
