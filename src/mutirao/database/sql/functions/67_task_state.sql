-- How each task of an instance stands, for whoever looks at the instance as a whole.

create or replace function mutirao.task_states(instance bigint, out task text, out state text, out job bigint, out since timestamptz, out times int) returns setof record
language plpgsql stable security definer as $$
declare
  w mutirao.work := mutirao.moment_now(instance);
  renamings jsonb := mutirao.renamings(instance);
  blocked int[] := case when w.kind = 'now' and w.failed <> '{}' then mutirao.blocked_tasks(w) else '{}' end;
begin
  return query
    select t.name, case
        when j.status = 'failed' or j.id is null and e.kind = 'fail' then case when r.contingency is not null or r.on_failure = 'release' then 'aborted' else 'failed' end
        when mutirao.job_state(j.status, j.gate) = 'synchronizing' then 'synchronizing'
        when j.status = 'waiting' and j.failures = 0 then 'not_ready'
        when j.status in ('running', 'parked') then 'running'
        when j.id is not null then 'ready'
        when d.is_compensated then 'compensated'
        when e.at is not null and not d.is_forgotten then 'succeeded'
        when r.task = any (blocked) then 'blocked'
        else 'not_ready' end,
      j.id, coalesce(j.ready_at, j.created_at, e.at), coalesce(e.times, 0)::int
    from mutirao.rule r join mutirao.task t on t.id = r.task
    left join mutirao.job j on j.instance = w.instance and j.task = r.task
    left join (
      select distinct on (n.task) n.task, x.id, x.at, x.kind, count(*) filter (where x.kind <> 'fail') over (partition by n.task) as times
      from mutirao.trace x cross join lateral (select mutirao.task_since(renamings, x.id, x.task) as task offset 0) n
      where x.instance = w.instance and (x.kind in ('finish', 'skip', 'compensate') or x.kind = 'fail' and w.kind <> 'now')
      order by n.task, x.id desc) e on e.task = r.task  -- while it is open, what has failed has its job
    left join mutirao.ends(w.instance) d on d.id = e.id
    where r.version = w.version and r.enabled and t.name <> '_FINAL' order by r.position;
end $$;
comment on function mutirao.task_states(bigint) is
  'Each task of an instance: not_ready, synchronizing, ready, running, succeeded, failed, aborted, blocked or compensated; its job if it has one, since when, and how often it has ended.';
