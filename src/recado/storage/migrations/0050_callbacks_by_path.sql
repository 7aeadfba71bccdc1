-- The same body may come to the paths of several adapters (C29.5): only at one path it is a repeat.
alter table callbacks drop constraint callbacks_sha256_key, add unique (channel, adapter, sha256);
