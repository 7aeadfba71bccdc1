-- name: by_id
select * from contacts where organization_id = $1 and env = $2 and id = $3

-- name: by_id_locked
select * from contacts where organization_id = $1 and env = $2 and id = $3 for update

-- name: by_phones
-- One look into the index for each. Without statistics every index that begins with organization and environment seems as
-- good as this one; only this one has the order that is asked for. Between itself and itself: anyone who is not there is known
-- from the index alone.
select c.*
from unnest($3::text[]) as g (phone)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and phone >= g.phone and phone <= g.phone
    order by phone
    limit 1
) c
order by c.id

-- name: by_external_ids
select c.*
from unnest($3::text[]) as g (external_id)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and external_id >= g.external_id and external_id <= g.external_id
    order by external_id
    limit 1
) c
order by c.id

-- name: by_email
-- In no order: one of ids would be as well had, without statistics, by reading all contacts.
select id from contacts where organization_id = $1 and env = $2 and email_key = $3

-- name: lock
-- One by one along the key, as above, and in the order of their ids: so everybody locks contacts who changes several.
select c.id
from (select * from unnest($3::text[]) as g (id) order by id offset 0) g
cross join lateral (
    select id from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id
    order by id
    limit 1
    for update
) c

-- name: by_ids
select c.*
from unnest($3::text[]) as g (id)
cross join lateral (
    select * from contacts
    where organization_id = $1 and env = $2 and id >= g.id and id <= g.id
    order by id
    limit 1
) c
order by c.id

-- name: insert
-- A batch of new contacts, by phone, so that two batches with the same phones do not wait for each other. Anyone who has the
-- phone or the external id of another one is left out, and with $31 also anyone the opt-out registry knows: those need a
-- closer look. Answers the ids of those that were stored.
with given as (
    select
        organization_id, env, id, phone, decode(phone_hash, 'hex') as phone_hash, name, chatapp_profile_name, email, email_key,
        decode(email_hash, 'hex') as email_hash, avatar_url, cpf_cipher, cnpj_cipher, birth_date_cipher,
        decode(cpf_index, 'hex') as cpf_index, decode(cnpj_index, 'hex') as cnpj_index, attributes, tags, tag_keys, source,
        external_id, external_ids, company_id, company_role, opt_in_status, opt_in_source, moment(opt_in_at_us) as opt_in_at,
        opt_in_ip, opt_in_user_agent, moment(opt_in_revoked_us) as opt_in_revoked_at, opt_in_revoked_reason, words,
        moment(updated_us) as updated_at, spellings
    from unnest(
        unpack($1), unpack($2), unpack($3), unpack($4), unpack($5), $6::text[], $7::text[], unpack($8), unpack($9), unpack($10),
        unpack($11), unpack($12), unpack($13), unpack($14), unpack($15), unpack($16), unpack($17), $18::text[], $19::text[],
        unpack($20), $21::text[], $22::text[], unpack($23), unpack($24), unpack($25), $26::text[], unpack($27)::bigint[],
        $28::text[], $29::text[], unpack($30)::bigint[], $32::text[], unpack($33), unpack($34)::bigint[],
        unpack($35)
    ) as g (
        organization_id, env, id, phone, phone_hash, name, chatapp_profile_name, email, email_key, email_hash, avatar_url,
        cpf_cipher, cnpj_cipher, birth_date_cipher, cpf_index, cnpj_index, attributes, tags, tag_keys, source, external_id,
        external_ids, company_id, company_role, opt_in_status, opt_in_source, opt_in_at_us, opt_in_ip, opt_in_user_agent,
        opt_in_revoked_us, opt_in_revoked_reason, words, updated_us, spellings
    )
)
insert into contacts (
    organization_id, env, id, phone, phone_hash, name, chatapp_profile_name, email, email_key, avatar_url, cpf_cipher,
    cnpj_cipher, birth_date_cipher, cpf_index, cnpj_index, attributes, tags, tag_keys, source, external_id, external_ids,
    company_id, company_role, opt_in_status, opt_in_source, opt_in_at, opt_in_ip, opt_in_user_agent, opt_in_revoked_at,
    opt_in_revoked_reason, search, updated_at
)
select
    organization_id, env, id, phone, phone_hash, name, chatapp_profile_name, email, email_key, avatar_url, cpf_cipher,
    cnpj_cipher, birth_date_cipher, cpf_index, cnpj_index, attributes::jsonb, tags::text[], tag_keys::text[], source,
    external_id, coalesce(external_ids, '{}')::jsonb, company_id, company_role, opt_in_status, opt_in_source, opt_in_at,
    opt_in_ip, opt_in_user_agent, opt_in_revoked_at, opt_in_revoked_reason, array_to_tsvector(string_to_array(words, ' ')),
    updated_at
from given g
where
    not $31::boolean
    or (
        not exists (
            select from opt_outs o
            where o.organization_id = g.organization_id and o.env = g.env and o.kind = 'phone' and o.hash = g.phone_hash
        )
        and not exists (
            select from opt_outs o
            where o.organization_id = g.organization_id and o.env = g.env and o.kind = 'email' and o.hash = g.email_hash
        )
        and (opted_out_as(g.organization_id, g.env, g.spellings)) is not true
    )
order by organization_id, env, phone
on conflict do nothing
returning id

-- name: holders
-- Who has the phones and external ids that new contacts were left out for; each looked up as above.
select g.id, c.id as holder, c.phone = g.phone as by_phone
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as g (organization_id, env, id, phone, external_id)
cross join lateral (
    (
        select id, phone from contacts
        where organization_id = g.organization_id and env = g.env and phone >= g.phone and phone <= g.phone
        order by phone
        limit 1
    )
    union all
    (
        select id, phone from contacts
        where
            organization_id = g.organization_id and env = g.env
            and external_id >= g.external_id and external_id <= g.external_id
        order by external_id
        limit 1
    )
) c

-- name: save
update contacts set
    name = $5, chatapp_profile_name = $6, email = $7, email_key = $8, avatar_url = $9, cpf_cipher = $10, cnpj_cipher = $11,
    birth_date_cipher = $12, cpf_index = $13, cnpj_index = $14, attributes = $15, tags = $16, tag_keys = $17,
    external_id = $18, external_ids = $19, company_id = $20, company_role = $21, opt_in_status = $22, opt_in_source = $23,
    opt_in_at = $24, opt_in_ip = $25, opt_in_user_agent = $26, opt_in_revoked_at = $27, opt_in_revoked_reason = $28,
    search = array_to_tsvector($29::text[]), revision = revision + 1, updated_at = $30
where organization_id = $1 and env = $2 and id = $3 and revision = $4
returning *

-- name: delete
delete from contacts where organization_id = $1 and env = $2 and id = $3
