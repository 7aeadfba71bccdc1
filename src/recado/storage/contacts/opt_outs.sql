-- name: entries
-- What the registry holds of these names; `n` tells which of those asked for.
select g.n, o.at, o.source
from unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::bytea[]) as g (n, organization_id, env, kind, hash)
cross join lateral (
    select at, source from opt_outs
    where organization_id = g.organization_id and env = g.env and kind = g.kind and hash = g.hash
    offset 0
) o;

-- name: enter
-- Of an entry that is there already the later date stays, and a source of an operator or a complaint, as no keyword takes
-- back what they refused; else the later source. $7: the sources of a person's own refusal.
insert into opt_outs (organization_id, env, kind, hash, at, source)
select g.*
from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[], $6::text[]) as g
on conflict (organization_id, env, kind, hash) do update
set
    at = greatest(opt_outs.at, excluded.at),
    source = case
        when (excluded.source = any($7::text[])) is true and (opt_outs.source = any($7)) is not true then opt_outs.source
        when (excluded.source = any($7)) is not true and (opt_outs.source = any($7)) is true then excluded.source
        else coalesce(excluded.source, opt_outs.source)
    end
where
    opt_outs.at < excluded.at
    or ((excluded.source = any($7)) is not true and (opt_outs.source = any($7)) is true);

-- name: refused_by_email
-- What a claim adds (dispatch.sql): several contacts may have the address, and one that refused is enough.
or (
    g.email is not null
    and (
        exists (
            select from opt_outs o
            where
                o.organization_id = g.organization_id and o.env = g.env and o.kind = 'email'
                and o.hash = sha256(convert_to(g.organization_id || ':' || g.email, 'UTF8'))
            offset 0
        )
        or {denied}
    )
);

-- name: forbidden_by_email
-- What accepting adds (messages.sql), likewise; and where consent is needed, one that gave it is enough.
union all
select id, opted_out
from (
    select
        g.id, g.granted_only and not c.granted as ungranted,
        c.denied
        or exists (
            select from opt_outs o
            where
                o.organization_id = g.organization_id and o.env = g.env and o.kind = 'email'
                and o.hash = sha256(convert_to(g.organization_id || ':' || g.email, 'UTF8'))
            offset 0
        ) as opted_out
    from given g
    cross join lateral (
        select
            {denied} as denied,
            {granted} as granted
        offset 0
    ) c
    where g.asks_consent and g.email is not null
    offset 0
) asked
where opted_out or ungranted;

-- name: leave
delete from opt_outs where organization_id = $1 and env = $2 and kind = $3 and hash = $4;

-- name: leave_unless_shared
delete from opt_outs
where
    organization_id = $1 and env = $2 and kind = $3 and hash = $4
    and not exists (
        select from contacts
        where organization_id = $1 and env = $2 and email_key = $5 and id <> $6 and opt_in_status = 'denied'
    );

-- name: anyone_opted_out
select exists (select from opt_outs where organization_id = $1 and env = $2)

-- name: opted_out
-- The places of new contacts whose phone, in any spelling, or address is in the registry.
select g.place::integer
from unnest(unpack($3), unpack($4), unpack($5)) with ordinality as g (phone_hash, email_hash, spellings, place)
where
    exists (
        select from opt_outs
        where organization_id = $1 and env = $2 and kind = 'phone' and hash = decode(g.phone_hash, 'hex')
    )
    or exists (
        select from opt_outs
        where organization_id = $1 and env = $2 and kind = 'email' and hash = decode(g.email_hash, 'hex')
    )
    or (opted_out_as($1, $2, g.spellings)) is true
