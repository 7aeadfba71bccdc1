-- What is due for a message that has left: when, and the part of its price that stays held until then (C25.2). The policy of its channel
-- says what; it goes when the message moves on, or when it is due. No foreign key, as everywhere: a message's month may be gone before.
create table message_deadlines (
    organization_id id not null,
    env text not null,
    channel text not null,
    message_id id not null,
    kind text not null,
    due_at timestamptz not null,
    held_coins bigint not null default 0,
    primary key (organization_id, message_id, kind)
);
create index message_deadlines_due on message_deadlines (due_at);
