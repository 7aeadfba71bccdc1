-- Rows that wait to be written may hold documents (CPF, CNPJ, birth dates): they are stored encrypted (C30.1). Those of before
-- are read as they are, and are gone when their imports are done.

alter table contact_import_blocks add column sealed boolean not null default false;
