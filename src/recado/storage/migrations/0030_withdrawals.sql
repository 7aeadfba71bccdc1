-- What is left to be withdrawn of people for whom more messages wait than one commit takes (C12.5.3, C12.6). Mostly empty.
create table withdrawals (
    organization_id id not null,
    env text not null,
    kind text not null, -- opted_out, of a recipient; deleted, of a contact
    name text collate "C" not null, -- the recipient's hash; the contact's id
    before_id id not null, -- messages from this one on came later
    primary key (organization_id, env, kind, name)
);
