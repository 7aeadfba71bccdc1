-- Of when the latest report of a template's status was: one that comes later and is older changes nothing (C11.3).

alter table templates add column reported_at timestamptz;
