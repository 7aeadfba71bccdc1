-- Phones in one spelling (C2.4): Mexico without the 1, Argentina with the 9, Brazil without a zero before the area code. What was
-- stored in another one is found by the canonical one from now on.

create function pg_temp.respelled(phone text) returns text language sql immutable strict as $$
    select case
        when phone ~ '^\+521\d{10}$' then '+52' || substr(phone, 5)
        when phone ~ '^\+54(11\d{8}|[23]\d{9})$' then '+549' || substr(phone, 4)
        when phone ~ '^\+550[1-9]\d[6-9]\d{7}$' then '+55' || substr(phone, 5, 2) || '9' || substr(phone, 7)
        when phone ~ '^\+550[1-9]\d(9[6-9]\d{7}|[2-5]\d{7})$' then '+55' || substr(phone, 5)
        else phone
    end
$$;
create function pg_temp.hashed(organization text, phone text) returns bytea language sql immutable strict as $$
    select sha256(convert_to(organization || ':' || phone, 'UTF8'))
$$;
create function pg_temp.recipient(organization text, phone text) returns bigint language sql immutable strict as $$
    select ('x' || encode(substr(pg_temp.hashed(organization, phone), 1, 8), 'hex'))::bit(64)::bigint
$$;

-- Of whom anything is stored by the former spelling: contacts, and recipients of messages that nobody deleted.
create temporary table spellings on commit drop as
select distinct organization_id, env, former, pg_temp.respelled(former) as phone
from (
    select organization_id, env, phone as former from contacts where phone ~ '^\+5(21|4[^9]|50)'
    union all
    select organization_id, env, recipient from messages where recipient ~ '^\+5(21|4[^9]|50)'
) known
where pg_temp.respelled(former) <> former;

-- A refusal is one of every spelling. The former entry stays: messages that wait may carry that spelling.
insert into opt_outs (organization_id, env, kind, hash, at, source)
select distinct on (s.organization_id, s.env, s.phone)
    s.organization_id, s.env, o.kind, pg_temp.hashed(s.organization_id, s.phone), o.at, o.source
from spellings s
join opt_outs o
    on o.organization_id = s.organization_id and o.env = s.env and o.kind = 'phone'
    and o.hash = pg_temp.hashed(s.organization_id, s.former)
order by s.organization_id, s.env, s.phone, o.at desc
on conflict (organization_id, env, kind, hash) do update
set at = excluded.at, source = coalesce(excluded.source, opt_outs.source)
where opt_outs.at < excluded.at;

-- An open window is one, too.
insert into chat_windows (organization_id, number_id, recipient_hash, last_inbound_at)
select w.organization_id, w.number_id, pg_temp.recipient(s.organization_id, s.phone), max(w.last_inbound_at)
from spellings s
join chat_windows w
    on w.organization_id = s.organization_id and w.recipient_hash = pg_temp.recipient(s.organization_id, s.former)
group by 1, 2, 3
on conflict (organization_id, number_id, recipient_hash) do update
set last_inbound_at = greatest(chat_windows.last_inbound_at, excluded.last_inbound_at);

-- A refusal finds what waits.
update dispatch d set consent_hash = pg_temp.recipient(s.organization_id, s.phone)
from spellings s
where
    d.organization_id = s.organization_id and d.env = s.env and d.consent_hash is not null
    and d.consent_hash = pg_temp.recipient(s.organization_id, s.former);

-- Contacts; whoever is one in both spellings stays two: one of them is found by the phone.
update contacts c set
    phone = s.phone, phone_hash = pg_temp.hashed(c.organization_id, s.phone), revision = c.revision + 1, updated_at = now(),
    search = array_to_tsvector(array(
        select case
            when right(word, length(s.former)) = s.former then left(word, -length(s.former)) || s.phone
            when right(word, length(s.former)) = '-' || reverse(substr(s.former, 2))
                then left(word, -length(s.former)) || '-' || reverse(substr(s.phone, 2))
            else word
        end
        from unnest(tsvector_to_array(c.search)) as word
    ))
from (
    select distinct on (s.organization_id, s.env, s.phone) s.*
    from spellings s
    join contacts c on c.organization_id = s.organization_id and c.env = s.env and c.phone = s.former
    order by s.organization_id, s.env, s.phone, s.former
) s
where
    c.organization_id = s.organization_id and c.env = s.env and c.phone = s.former
    and not exists (
        select from contacts other
        where other.organization_id = s.organization_id and other.env = s.env and other.phone = s.phone
    );

update numbers set display_phone = pg_temp.respelled(display_phone), revision = revision + 1, updated_at = now()
where pg_temp.respelled(display_phone) <> display_phone and deleted_at is null;
