"""The nodes that a resubmit excludes."""

from dataclasses import replace

from classifiers.contracts import Evidence, JobFacts, Suspect
from service.recommend import node_exclusion, policy
from service.recommend.facts import Suspicion
from tests.service.recommend.sample_facts import FAILED, LOST_GPU, PASSING, TYPO

SETTINGS = policy.built_in().suspicion
BAD = Suspicion(9.0, 4.0, 15.0)


def left_out(verdict: object, job: JobFacts, **suspicion: Suspicion) -> tuple[str, ...]:
    return node_exclusion.nodes_to_exclude(verdict, job, suspicion, SETTINGS)  # type: ignore[arg-type]


def test_only_a_node_of_the_job_is_excluded_under_its_scheduler_name() -> None:
    assert left_out(LOST_GPU, FAILED) == ("gpu018.orion",)
    assert left_out(replace(LOST_GPU, suspect=Suspect(node="login2")), FAILED) == ()
    assert left_out(replace(LOST_GPU, suspect=Suspect(node="GPU018")), FAILED) == ("gpu018.orion",)
    assert left_out(replace(LOST_GPU, suspect=None), JobFacts(status="failed", nodes=("gpu3",))) == ("gpu3",)
    assert left_out(replace(LOST_GPU, retry_outlook="helps"), FAILED) == ()


def test_evidence_of_one_node_alone_names_it() -> None:
    line = Evidence("Xid 79", "initiating", node="gpu017")
    assert left_out(replace(LOST_GPU, suspect=None, evidence=(line,)), FAILED) == ("gpu017",)
    both = (line, Evidence("Xid 79", "initiating", node="gpu018"))
    assert left_out(replace(LOST_GPU, suspect=None, evidence=both), FAILED) == ()


def test_the_only_node_is_kept_if_the_failure_began_with_an_event_of_another_one() -> None:
    job = JobFacts(status="failed", nodes=("launcher",))
    event, line = Evidence("Kernel panic", "initiating", node="gpu45", stream="node"), Evidence("lost", "initiating")
    led = replace(LOST_GPU, suspect=Suspect(rank=40), evidence=(event, line))
    assert left_out(led, job) == ()
    assert left_out(replace(led, evidence=(line, event)), job) == ("launcher",)
    assert left_out(replace(led, evidence=(replace(event, node="launcher.example"),)), job) == ("launcher",)
    assert left_out(replace(led, suspect=Suspect(node="launcher")), job) == ("launcher",)


def platform_fault(*evidence: Evidence) -> tuple[str, ...]:
    """The nodes that are left out for a fault of the platform on gpu017 with these beginnings."""
    verdict = replace(PASSING, cause="SYS.6", retry_outlook="after_repair", suspect=Suspect(node="gpu017"))
    return left_out(replace(verdict, evidence=evidence), FAILED)


def test_a_platform_fault_is_of_one_node_only_if_an_event_says_so_and_no_other_node_shows_it() -> None:
    event = Evidence("libnvidia-compute upgraded, reboot required", "initiating", node="gpu017", stream="node")
    named = Evidence("play slurm-node on gpu017: changed=4", "initiating", node="deploy1", stream="node")
    everywhere = Evidence("webhook rolled out for all namespaces", "initiating", stream="node")
    in_log = Evidence("OSError: [Errno 28] No space left on device", "initiating", node="gpu017", rank=0)
    launcher = Evidence("srun: error: task launch failed", "initiating", node="gpu018", stream="scheduler")
    assert platform_fault(event) == platform_fault(named) == platform_fault(event, in_log) == ("gpu017",)
    assert platform_fault(event, launcher) == ("gpu017",)  # the launcher's node only reports it
    assert platform_fault(in_log) == platform_fault(everywhere) == ()
    assert platform_fault(event, replace(event, node="gpu018")) == ()
    assert platform_fault(replace(named, text="play slurm-node on gpu0171: changed=4")) == ()  # another node's name
    assert platform_fault(replace(named, text="play slurm-node on gpu[017-018]: changed=4")) == ()


def test_a_suspected_node_is_excluded_without_log_evidence() -> None:
    job = replace(FAILED, nodes=("a", "b", "c", "d"))
    assert left_out(PASSING, job, b=BAD) == ("b",)
    assert left_out(PASSING, job, b=Suspicion(9.0, 1.5, 30.0)) == ()  # not surely
    assert left_out(PASSING, job, b=Suspicion(3.0, 2.5, 4.0)) == ()  # not by much
    assert left_out(replace(LOST_GPU, suspect=Suspect(node="a")), job, b=BAD) == ("a", "b")


def test_a_verdict_that_suspects_no_node_excludes_none() -> None:
    job = replace(FAILED, nodes=("a", "b", "c", "d"))
    suspect = Suspect(node="a", gpu=1)
    assert left_out(replace(TYPO, suspect=suspect, retry_outlook="helps_elsewhere"), job, b=BAD) == ()
    assert left_out(replace(LOST_GPU, suspect=suspect, abstained=True), job, b=BAD) == ()
    assert left_out(replace(LOST_GPU, suspect=suspect), job, b=BAD) == ("a", "b")


def test_the_most_suspected_nodes_are_excluded_up_to_the_limit() -> None:
    job = replace(FAILED, nodes=("a", "b", "c", "d"))
    doubted = {name: Suspicion(9.0, low, 20.0) for name, low in (("a", 3.0), ("b", 5.0), ("c", 4.0), ("d", 6.0))}
    assert left_out(PASSING, job, **doubted) == ("d", "b")
