-- How large a state, a change and a trace may be, per flow. Running workers: a change that is larger is refused from now on.

alter table mutirao.flow
  add column state_limit int not null default 1000000 check (state_limit > 0),
  add column change_limit int not null default 1000000 check (change_limit > 0),
  add column trace_limit int not null default 100000 check (trace_limit > 0);
comment on column mutirao.flow.state_limit is 'Bytes of a state as the database holds it; mutirao.limit_size sets it, and the look has it built in.';
comment on column mutirao.flow.trace_limit is 'Rows in the trace of an instance, from which on nothing is set from outside any more. What its tasks write, the firing limit bounds.';
