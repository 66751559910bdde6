"""Slurm: requeues the job without the bad node, or submits it again if Slurm no longer knows the job.

Measured on Slurm 24.11: the comment of a finished job can't be changed, so the request id is written into it between
`requeuehold` and `release`. `release` is the decisive step; all steps before it can be repeated. Slurm delays a
requeued job by 120 s unless its StartTime is set. After MinJobAge (300 s) neither requeue nor script is available.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from service.clock import Clock
from service.contracts.advice import OPT_IN_LABEL, REQUEST_LABEL
from service.errors import UnreadableRecord
from service.formats.slurm.nodes import expand_nodes
from service.formatting import one_line
from service.hooks.request import Failed, Lease, Ready, Request, SchedulerUnavailable, Settled, opt_in_objection
from service.hooks.slurm import comment as words
from service.hooks.slurm import scripts, submit
from service.hooks.slurm.client import SlurmClient
from service.hooks.slurm.record import REQUEUED_ON_HOLD, SlurmJob, text
from service.hooks.slurm.script_options import UnsafeScript, without_privileged_options
from service.hooks.slurm.scripts import SavedScript, ScriptStore
from service.hooks.slurm.tools import JOB_ID, SlurmRefused

log = logging.getLogger(__name__)

COMPLETING_RETRY_S = 10.0
REFUSED_RETRY_S = 60.0
CLOCKS = timedelta(seconds=5)  # maximum clock difference between controller, service and hook
MOST_SAVED_A_ROUND = 50
LONGEST_NOTE = 300
NOT_TELLING = "does not apply"  # the detail of a rule that was evaluated and does not apply


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """Options that an administrator may set.

    Attributes:
        as_root: submit as the jobs' users (`sbatch --uid`), which only root may do.
        user: the user of this process; without root it submits jobs of this user only.
        save_scripts: save the scripts of failed jobs for later submissions.
        link: URL of the service's pages; if set, a line about the failure is written into the job's AdminComment.
        spool: the controller's StateSaveLocation, from which the environments of failed jobs are read.
        timeout_s: seconds that a command of Slurm may take; a request is begun only if its lease lasts that long.
        settle_s: seconds after writing an intent during which the absence of an effect proves nothing.
    """

    as_root: bool = True
    user: str | None = None
    save_scripts: bool = True
    link: str | None = None
    spool: Path | None = None
    settle_s: float = 20.0
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """A planned action. `job`: current or earlier job; `saved`: for a submission; `begun`: on hold for this request."""

    job: SlurmJob
    exclude: tuple[str, ...] = ()
    saved: SavedScript | None = None
    begun: bool = False


class SlurmScheduler:
    """See `service.hooks.request.Scheduler`."""

    kind = "slurm"
    can_look_up = True

    def __init__(self, tools: SlurmClient, scripts: ScriptStore, clock: Clock, options: SlurmOptions) -> None:
        self._tools = tools
        self._scripts = scripts
        self._clock = clock
        self._options = options
        self._memory_s: int | None = None
        self._plans: dict[str, _Plan] = {}
        self._looked_at: set[tuple[str, int]] = set()  # failed jobs whose scripts are saved, or not to be saved

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        """See `Scheduler`."""
        self._plans.clear()
        try:
            plan = self._look(request, begun_at)
        except SlurmRefused as error:
            if begun_at is not None:  # the job may be on hold for this request, which must not be forgotten
                raise SchedulerUnavailable(str(error)) from None
            return Failed(str(error), REFUSED_RETRY_S)
        except UnreadableRecord as error:
            return Settled("refused", f"a list of nodes in the job's record can't be read: {error.detail}")
        if not isinstance(plan, _Plan):
            return plan
        self._plans[request.request_id] = plan
        without = f" without {', '.join(plan.exclude)}" if plan.exclude else ""
        if plan.begun:
            return Ready(f"release it{without}: it is on hold for this request", begun=True)
        return Ready(f"requeue it{without}" if plan.saved is None else f"submit its script again{without}")

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        """See `Scheduler`; executes the plan of the last `inspect`."""
        plan = self._plans.pop(request.request_id)
        wanted = replace(request, exclude_nodes=plan.exclude)
        return self._requeue(wanted, plan, lease) if plan.saved is None else self._submit(wanted, plan.saved, lease)

    def maintain(self) -> None:
        """Save the scripts of failed jobs while Slurm still has them."""
        if not self._options.save_scripts:
            return
        self._scripts.prune()
        try:
            ended = self._tools.failed_jobs()
            self._looked_at.intersection_update(ended)
            fresh = [one for one in ended if one not in self._looked_at and not self._scripts.has(*one)]
            for one in fresh[:MOST_SAVED_A_ROUND]:
                self._save(one[0])
                self._looked_at.add(one)
        except (SlurmRefused, OSError) as error:
            log.warning("scripts of failed jobs are not saved now: %s", error)

    def _save(self, job_id: str) -> None:
        """Save the script of a failed job that may be submitted again; a job that can't be read is left out."""
        try:
            job = self._tools.job(job_id)
            if job is not None and job.batch and words.opt_in(job.comment) != "never":
                self._scripts.save(job, self._tools.script(job_id), self._environment(job))
        except SlurmRefused as error:
            log.warning("the script of job %s is not saved: %s", job_id, error)

    def close(self) -> None:
        """Do nothing; no resources are held."""

    def _look(self, request: Request, begun_at: datetime | None) -> _Plan | Settled | Failed:
        if JOB_ID.fullmatch(request.job_id) is None:
            return Settled("refused", "not the number of a Slurm job, or a part of a heterogeneous one")
        if begun_at is not None or request.lease_count > 1:
            found = self._submitted_for(request)
            if found is not None:
                return Settled("done", "it was submitted before the hook ended", found)
        job = self._tools.job(request.job_id)
        if job is None:
            return self._forgotten(request, begun_at)
        return self._known(request, job, begun_at)

    def _submitted_for(self, request: Request) -> str | None:
        """Return the job that was submitted for a request earlier, if any.

        Anybody can write a request's id into a comment: a job counts only if it belongs to the failed job's user.
        """
        owner = request.extra.get("user")
        for found in self._tools.find(f"{REQUEST_LABEL}={request.request_id}"):
            job = None if found == request.job_id else self._tools.job(found)
            if job is None or words.comment_fields(job.comment).get(REQUEST_LABEL) != request.request_id:
                continue
            if not isinstance(owner, str):
                failed = self._tools.job(request.job_id) or getattr(self._scripts.get(request.job_id), "job", None)
                owner = job.user if failed is None else failed.user
            if job.user == owner:
                return found
        return None

    def _known(self, request: Request, job: SlurmJob, begun_at: datetime | None) -> _Plan | Settled | Failed:
        """Evaluate a job that Slurm knows."""
        if words.comment_fields(job.comment).get(REQUEST_LABEL) == request.request_id:
            if job.held_by_administrator:
                return Settled("unknown", "it is in the queue again, and an administrator holds it")
            if job.waits_on_hold:
                return self._plan(request, job, begun=True)
            return Settled("done", f"requeued; it is {job.states[0]} now")
        if job.end is None:
            return self._going(request, job, begun_at)
        against = self._over(request, job) or self._refusal(request, job)
        if not isinstance(against, Settled):
            self._wait_until_settled(begun_at)
        return against or self._plan(request, job)

    def _going(self, request: Request, job: SlurmJob, begun_at: datetime | None) -> _Plan | Settled:
        """Evaluate a pending or running job: started by our own first step, by Slurm or by a person."""
        requeued = job.waits_on_hold and not job.held_by_administrator and job.description == REQUEUED_ON_HOLD
        since = None if begun_at is None else begun_at - CLOCKS
        if requeued and since is not None and job.submitted_at is not None and job.submitted_at >= since:
            return self._plan(request, job, begun=True)
        if requeued and begun_at is None and request.lease_count > 1:
            return Settled(
                "unknown",
                "it is in the queue again, on hold, perhaps by another hook that ended in the middle of this request:"
                " a person has to release it",
            )
        on_hold = ", on hold" if job.waits_on_hold else ""
        return Settled("already_done", f"it is {job.states[0]}{on_hold} again already, by Slurm itself or a person")

    def _over(self, request: Request, job: SlurmJob) -> Settled | Failed | None:
        """Evaluate the final state of the job."""
        if job.expedited:
            return Settled("already_done", "Slurm starts it again by itself (expedited requeue)")
        if job.completing:
            return Failed("it is still being cleaned up (COMPLETING)", COMPLETING_RETRY_S)
        if job.end == "COMPLETED":
            return Settled("already_done", "it has succeeded since")
        if job.end == "CANCELLED":
            return Settled("refused", "it was cancelled")
        before = request.ended_before
        if before is not None and job.ended_at is not None and job.ended_at > before + CLOCKS:
            return Settled("already_done", f"it has run again since, and ended as {job.end}")
        return None

    def _forgotten(self, request: Request, begun_at: datetime | None) -> _Plan | Settled:
        """Evaluate a job that Slurm no longer knows: only its saved script is available."""
        if begun_at is not None:
            self._wait_until_settled(begun_at)
            if self._clock.now() - begun_at > timedelta(seconds=self._memory()) - CLOCKS:
                return Settled(
                    "unknown", "it was begun, and so long ago that Slurm would have forgotten what came of it"
                )
        saved = self._scripts.get(request.job_id)
        if saved is None:
            return Settled("refused", "Slurm does not know the job any more (MinJobAge), and its script was not saved")
        return self._refusal(request, saved.job) or self._plan(request, saved.job, saved=saved)

    def _refusal(self, request: Request, job: SlurmJob) -> Settled | None:
        """Return the objection of the job's owner or of the job's own settings, if any."""
        owner_mode = words.opt_in(job.comment)
        user = request.extra.get("user")
        objection = opt_in_objection(request, owner_mode, "the job's comment", separator="=")
        why = None
        if not job.batch:
            why = "not a batch job"
        elif job.heterogeneous:
            why = "a part of a heterogeneous job"
        elif isinstance(user, str) and user != job.user:
            why = f"the job of this number is another user's now ({job.user})"
        elif objection is not None:
            why = objection
        elif not job.may_requeue and owner_mode != "auto":
            why = f"submitted with --no-requeue, and its comment does not say {OPT_IN_LABEL}=auto"
        return None if why is None else Settled("refused", why)

    def _wait_until_settled(self, begun_at: datetime | None) -> None:
        """Check that the earlier attempt is not so recent that its Slurm commands may still take effect.

        Raises:
            SchedulerUnavailable: the attempt is that recent.
        """
        if begun_at is not None and self._clock.now() - begun_at < timedelta(seconds=self._options.settle_s):
            raise SchedulerUnavailable("it was started moments ago; its result may not be visible yet")

    def _plan(
        self, request: Request, job: SlurmJob, *, begun: bool = False, saved: SavedScript | None = None
    ) -> _Plan | Settled:
        """Return the plan if enough nodes remain."""
        expand_nodes(job.required, "required_nodes")  # what can't be read is found before the first step
        partitions = self._tools.nodes()
        here = {node.partition(".")[0]: node for nodes in partitions.values() for node in nodes}
        exclude = tuple(here.get(node.partition(".")[0], "") for node in request.exclude_nodes)
        if "" in exclude:
            unknown = request.exclude_nodes[exclude.index("")]
            return Settled("refused", f"{unknown} is to be left out, and is no node that Slurm knows here")
        own = [partitions[name] for name in job.partition.split(",") if name in partitions]
        out = set(exclude) | set(expand_nodes(job.excluded, "excluded_nodes"))
        left = len(frozenset().union(*own) - out)
        if own and exclude and left < job.node_count and not begun:
            return Settled(
                "refused", f"without {', '.join(exclude)} {left} nodes are left; it asks for {job.node_count}"
            )
        if saved is None and not begun and (request.action == "submit" or not job.may_requeue):
            saved = SavedScript(job, self._tools.script(job.job_id), self._environment(job))
        if saved is not None and not self._options.as_root and job.user != self._options.user:
            return Settled("refused", f"only root may submit a job of {job.user} again; the hook runs without root")
        if saved is not None and self._options.as_root:
            try:
                saved = replace(saved, script=without_privileged_options(saved.script))
            except UnsafeScript as option:
                return Settled("refused", f"its script has an option that is not repeated with root's rights: {option}")
        return _Plan(job, exclude, saved, begun)

    def _requeue(self, request: Request, plan: _Plan, lease: Lease) -> Settled | Failed:
        job = plan.job
        changes = self._changes(job, request)  # errors in these are found before the first step
        if not plan.begun:
            lease.check(self._options.timeout_s)
            try:
                self._tools.requeue_on_hold(job.job_id)
            except SlurmRefused as error:
                return Failed(str(error), REFUSED_RETRY_S)
        try:
            lease.check()
            self._tools.update(job.job_id, changes)
            lease.check()
            self._tools.release(job.job_id)
        except SlurmRefused as error:
            return Settled("unknown", f"it is in the queue again, on hold, and a person has to release it: {error}")
        return Settled("done", f"requeued{request.exclusion()}")

    def _changes(self, job: SlurmJob, request: Request) -> dict[str, str]:
        required = expand_nodes(job.required, "required_nodes")
        remaining = [node for node in required if node not in request.exclude_nodes]
        changes = submit.update(job, request, None if len(remaining) == len(required) else remaining)
        if (line := self._line(request)) is not None:
            changes["AdminComment"] = line
        return changes

    def _environment(self, job: SlurmJob) -> bytes | None:
        if self._options.spool is None:
            return None
        try:
            return scripts.spooled_environment(self._options.spool, job)
        except OSError as error:
            log.warning("job %s: its environment can't be read: %s", job.job_id, error)
            return None

    def _submit(self, request: Request, saved: SavedScript, lease: Lease) -> Settled | Failed:
        job = saved.job
        submit_options = submit.options(job, request, as_root=self._options.as_root)
        if saved.environment is None:
            submit_options.append("--export=NONE")
        folder = text(job.raw, "current_working_directory")
        lease.check(self._options.timeout_s)
        try:
            new = self._tools.submit(saved.script, submit_options, folder=folder, environment=saved.environment)
        except SlurmRefused as error:
            return Failed(str(error))
        if "_" in job.job_id:
            new = f"{new}_{job.job_id.partition('_')[2]}"
        if (line := self._line(request)) is not None:
            try:
                self._tools.update(new, {"AdminComment": line})
            except (SlurmRefused, SchedulerUnavailable) as error:  # the job runs; only the note is missing
                log.warning("job %s: no AdminComment: %s", new, error)
        return Settled("done", f"submitted as {new}{request.exclusion()}", new)

    def _line(self, request: Request) -> str | None:
        failure = request.extra.get("failure_id")
        if self._options.link is None or not isinstance(failure, int):
            return None
        telling = (one for one in request.reasons if isinstance(one, str) and not one.endswith(NOT_TELLING))
        why = one_line(next(telling, "resubmitted"))[:LONGEST_NOTE]
        return f"Faultline: {why} {self._options.link.rstrip('/')}/failures/{failure}"

    def _memory(self) -> int:
        if self._memory_s is None:
            self._memory_s = self._tools.memory_s()
        return self._memory_s
