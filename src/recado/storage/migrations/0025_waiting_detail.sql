-- What a wait's `detail` says is made when it is asked for (C14.6): nothing has ever written it here.

alter table dispatch drop column detail;
