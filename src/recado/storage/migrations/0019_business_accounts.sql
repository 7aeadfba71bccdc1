-- A business account at the provider belongs to one organization of the installation (C14.1): its news concern all of its
-- numbers and templates. `numbers`: how many of them the organization has; the last one that goes frees the account.

create table business_accounts (
    env text not null,
    business_account_id text not null,
    organization_id id not null,
    numbers integer not null,
    primary key (env, business_account_id)
);

-- Where two organizations have one already, it is of the one that registered a number of it first.
insert into business_accounts (env, business_account_id, organization_id, numbers)
select env, business_account_id, organization_id, count(*)
from (
    select
        n.env, n.business_account_id, n.organization_id,
        first_value(n.organization_id) over (partition by n.env, n.business_account_id order by n.id) as owner
    from numbers n
    where n.deleted_at is null
) n
where organization_id = owner
group by env, business_account_id, organization_id;
