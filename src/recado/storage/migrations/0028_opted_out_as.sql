-- Whether the opt-out registry has a phone under one of these spellings, which stand apart by spaces (C12.5.8). Few phones have
-- any: null without them, at no cost. A function, and not a part of the statements that ask, so that what it would cost
-- changes no plan of theirs.

create function opted_out_as(of_organization text, of_env text, spellings text) returns boolean
language plpgsql stable strict parallel safe cost 1 as $$
begin
    return exists (
        select from unnest(string_to_array(spellings, ' ')) as s (phone)
        cross join lateral (
            select from opt_outs o
            where
                o.organization_id = of_organization and o.env = of_env and o.kind = 'phone'
                and o.hash = sha256(convert_to(of_organization || ':' || s.phone, 'UTF8'))
            offset 0
        ) o
    );
end
$$;
