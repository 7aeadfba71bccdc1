-- Between which ids the messages of an open batch lie, a row for each block: made at once, their ids follow each other. So the rows of
-- a batch are found by the key of the queue. Gone when the batch is at rest.
create table batch_ranges (
    organization_id id not null,
    batch_id id not null,
    first_id id not null,
    last_id id not null,
    primary key (organization_id, batch_id, first_id)
);

-- Of the batches that are open already one range for each, among whose rows others may lie.
insert into batch_ranges (organization_id, batch_id, first_id, last_id)
select d.organization_id, d.owner, min(d.id), max(d.id)
from dispatch d
join batches b on b.organization_id = d.organization_id and b.env = d.env and b.id = d.owner and b.open
where d.owner <> 'single'
group by 1, 2;

drop index dispatch_owner;
