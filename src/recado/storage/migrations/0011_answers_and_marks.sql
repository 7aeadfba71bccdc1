-- Answers that people who opted out by a keyword are owed (C28.3): written in the commit of the refusal, gone when the answer
-- is a message. One a contact: whoever asks again before that is answered once. Whom it goes to stands in the contact alone.

create table opt_out_replies (
    organization_id id not null,
    env text not null,
    contact_id id not null,
    number_id id not null, -- the number that was written to
    asked_at timestamptz not null,
    primary key (organization_id, env, contact_id)
);

-- Whom a provider called unreachable (C13.2): few, and looked for with every delivery.
create index contacts_unreachable on contacts (organization_id, env, phone) where unreachable <> '{}';
