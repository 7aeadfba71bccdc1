-- What a journey uses, so that whoever deletes such a record finds the journey without reading its steps. An environment has few
-- journeys that are not archived, and an index of their own finds those (`journeys_not_archived`).
alter table journeys add column uses text[] not null default '{}';

update journeys j set uses = array(
    select distinct used.id collate "C"
    from (
        select case j.gatilho ->> 'tipo' when 'lista' then j.gatilho ->> 'listId' when 'segmento' then j.gatilho ->> 'segmentId' end
        union all
        select s.step ->> 'templateId' from jsonb_array_elements(j.passos) s (step)
        where s.step ->> 'tipo' = 'enviar' and s.step ->> 'canal' in ('chatapp', 'email')
        union all
        select s.step ->> 'numberId' from jsonb_array_elements(j.passos) s (step)
        where s.step ->> 'tipo' = 'enviar' and s.step ->> 'canal' = 'chatapp'
    ) used (id)
    where used.id is not null
    order by 1
);

alter table journeys alter column uses drop default;
