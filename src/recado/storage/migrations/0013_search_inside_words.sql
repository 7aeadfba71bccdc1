-- Words inside words (C12.1): found by three of their characters in a row, where the server has pg_trgm and lets us use it.
-- Elsewhere nothing is made, and a search finds the beginnings of words. How to have it later: docs/configuration.md.

do $$
declare
    trigrams text; -- the schema that holds them
begin
    begin
        create extension if not exists pg_trgm; -- trusted: who may create in the database may create it
    exception when others then -- not offered, not permitted, or not on a managed server's list: each has its own code
        null;
    end;
    select n.nspname into trigrams from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
    if trigrams is null or not has_schema_privilege(trigrams, 'usage') then
        return;
    end if;
    execute format(
        'create index contacts_search_inside on contacts using gin ((search::text) %I.gin_trgm_ops)'
        ' with (gin_pending_list_limit = 1024)',
        trigrams
    );
end
$$;
