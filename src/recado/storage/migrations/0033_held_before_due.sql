-- How long the queue of a number had stood still at a moment, by pauses of the number and suspensions of the organization
-- together, in milliseconds: what a message was held before it was due lengthens no time to live (C14.5). The records know the sum
-- of all holds, and since when one lasts. What may have ended after the moment is left out: a life is rather too long than too
-- short. Without its number, by those of the organization alone.

create function held_ms_at(of_organization text, of_number text, as_of timestamptz) returns bigint
language plpgsql stable strict parallel safe cost 1 as $$
begin
    return (
        select sum(
            h.held_ms + (1000 * extract(epoch from case
                when h.since < as_of then as_of - h.since else least(interval '0', as_of - h.updated_at)
            end))::bigint
        )::bigint
        from (
            select o.held_ms, o.held_since as since, o.updated_at from organizations o where o.id = of_organization
            union all
            select n.held_ms, n.operator_paused_at, n.updated_at
            from numbers n
            where n.organization_id = of_organization and n.id = of_number
        ) h
    );
end
$$;
