-- Where a report that waits came from: channel and adapter, as in the path of a callback, and the environment of which it speaks.
-- Of those that wait already, for ten minutes at most, the number tells the environment, and the last callback the adapter.
alter table parked_reports
    add column channel text not null default 'chatapp',
    add column adapter text not null default '',
    add column env text not null default 'live';
update parked_reports p set env = n.env from numbers n where n.organization_id = p.organization_id and n.id = p.sender_id;
update parked_reports
set adapter = case env
    when 'test' then 'sandbox'
    else coalesce((select c.adapter from callbacks c where c.channel = 'chatapp' order by c.id desc limit 1), 'bridge')
end;
alter table parked_reports
    alter column channel drop default, alter column adapter drop default, alter column env drop default;
