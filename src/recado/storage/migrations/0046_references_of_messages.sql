-- Finds a message by what a provider names it by, where that does not tell whose it is: the provider's id, or ours (C29.2). Account
-- and adapter are those of its send; one that is empty may be any. Of messages from before nobody knows the adapter, and of those
-- whose outcome stayed unknown neither, unless their sender has an account of its own.
create table named_messages (
    reference text collate "C" not null,
    account text not null,
    adapter text not null,
    organization_id id not null,
    env text not null,
    channel text not null,
    message_id id not null,
    primary key (reference, account, adapter)
);

-- The account of a sender that has one of its own; empty of any other. A function, so that its cost changes no plan of those who ask.
create function account_of(of_organization text, of_env text, of_channel text, of_sender text) returns text
language plpgsql stable parallel safe cost 1 as $$
begin
    return coalesce(
        (
            select s.account
            from sender_owners s
            where
                s.env = of_env and s.channel = of_channel
                and s.organization_id = of_organization and s.sender_id = of_sender
            limit 1
        ),
        ''
    );
end
$$;

insert into named_messages
select p.provider_message_id, n.phone_number_id, '', p.organization_id, n.env, 'chatapp', p.message_id
from provider_messages p
join numbers n on n.organization_id = p.organization_id and n.id = p.sender_id
on conflict do nothing;

-- What a bridge was given in the last thirty days, by our id as well: its reports may name no account.
create function pg_temp.lowest_id(at timestamptz) returns text language sql immutable strict as $$
    select 'msg_' || string_agg(
        substr(
            '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
            ((1000 * extract(epoch from at))::bigint / (62::numeric ^ place)::bigint % 62)::integer + 1, 1
        ),
        '' order by place desc
    )
    from generate_series(0, 7) place
$$;
insert into named_messages
select message_id, account, adapter, organization_id, env, channel, message_id
from named_messages
where
    message_id >= pg_temp.lowest_id(now() - interval '30 days')
    and exists (select from callbacks where channel = 'chatapp' and adapter = 'bridge')
on conflict do nothing;
insert into named_messages
select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id
from messages
where
    failed_at is not null and status = 'failed' and direction = 'outbound'
    and coalesce(original_error, last_error) like 'outcome\_unknown:%'
union all
select id, account_of(organization_id, env, channel, sender_id), '', organization_id, env, channel, id
from dispatch
where repeat_of is not null
on conflict do nothing;

drop table provider_messages;
alter table named_messages rename to provider_messages;
alter index named_messages_pkey rename to provider_messages_pkey;
