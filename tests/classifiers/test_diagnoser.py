import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from classifiers import signatures, taxonomy
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser, rules_version
from classifiers.model import artifact
from classifiers.model.artifact import Model, ModelError
from classifiers.model.packaged_scores import PackagedClassifier, PackagedScores
from classifiers.relevance import event_rules
from classifiers.signatures import Catalogue, LinePattern, Signature, When
from tests.classifiers.conftest import KINDS, labelled


def raw(text: str, **facts: object) -> RawCase:
    job = JobFacts(status="failed", gpus=8, nodes=("n1", "n2"))
    return RawCase(job=replace(job, **facts), streams=(LogStream(text=text, rank=0),))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_it_was_taught_is_known_with_other_numbers(diagnoser: Diagnoser, kind: str) -> None:
    cause, category, _, retry, _ = KINDS[kind]
    [verdict] = diagnoser.diagnose([labelled(kind, 77).raw])
    assert verdict.cause == cause
    assert verdict.category == (None if category == "none" else category)
    assert verdict.retry_outlook == retry
    assert verdict.evidence


def test_a_verdict_s_axes_agree(diagnoser: Diagnoser, cases: list[LabelledCase]) -> None:
    axes = taxonomy.load()
    for verdict in diagnoser.diagnose([case.raw for case in cases]):
        assert axes.side_of(verdict.cause) == verdict.side
        assert verdict.cause_top[0] == verdict.cause
        assert 1 <= len(verdict.cause_top) <= 3
        assert 0 <= verdict.confidence <= 1
        assert verdict.category is None or verdict.category in axes.categories
        assert all(code in axes.symptoms for code in verdict.symptom_top)
        assert len(verdict.symptom_top) <= 3
        assert verdict.symptom in {None, *verdict.symptom_top[:1]}
        assert verdict.fingerprint.startswith("v2:")
        assert verdict.explanation


def test_a_batch_answers_as_each_alone_and_in_order(diagnoser: Diagnoser, cases: list[LabelledCase]) -> None:
    raws = [case.raw for case in cases[::7]]
    together = diagnoser.diagnose(raws)
    alone = [diagnoser.diagnose([one])[0] for one in raws]
    assert [replace(one, confidence=0, weighed=()) for one in together] == [
        replace(one, confidence=0, weighed=()) for one in alone
    ]
    assert diagnoser.diagnose([]) == []


def test_one_process_has_no_symptom_of_distributed_training(diagnoser: Diagnoser) -> None:
    [verdict] = diagnoser.diagnose([raw("RuntimeError: CUDA out of memory 5", gpus=1, nodes=("n1",))])
    assert verdict.symptom is None


def test_a_verdict_shows_three_symptoms_and_the_chosen_one_first(
    diagnoser: Diagnoser, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = PackagedClassifier.scores
    symptoms = (("D.1.2", 0.4), ("none", 0.2), ("D.1.3", 0.15), ("B.2", 0.1), ("D.1.1", 0.1))

    def with_symptoms(self: PackagedClassifier, cases: Sequence[RawCase]) -> PackagedScores:
        found = scores(self, cases)
        return replace(found, labels=[replace(one, symptoms=symptoms) for one in found.labels])

    monkeypatch.setattr(PackagedClassifier, "scores", with_symptoms)
    [verdict] = diagnoser.diagnose([labelled("oom", 3).raw])
    assert verdict.symptom == "D.1.2"
    assert verdict.symptom_top == ("D.1.2", "D.1.3", "B.2")


def test_the_owner_reads_where_and_what(diagnoser: Diagnoser) -> None:
    [verdict] = diagnoser.diagnose([raw("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")])
    assert "memory fault" in verdict.explanation
    assert "rank 0" in verdict.explanation
    assert "uncorrectable ECC error" in verdict.explanation


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"exit_code": 1},
        {"exit_code": 1, "reason": "NonZeroExitCode"},
        {"signal": 11},
        {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"},
    ],
)
def test_that_a_job_ended_tells_no_side(diagnoser: Diagnoser, facts: dict[str, Any]) -> None:
    [verdict] = diagnoser.diagnose([RawCase(job=JobFacts(status="failed", **facts))])
    assert verdict.confidence <= 0.5
    assert "no log was given" in verdict.missing


@pytest.mark.parametrize("exit_code", [1, 137])
@pytest.mark.parametrize(
    "log",
    [
        "WARNING:tensorflow:From train.py:12: The name tf.Session is deprecated. Please use tf.compat.v1.Session.\n",
        "/opt/x.py:5: DeprecationWarning: pkg_resources is deprecated as an API\n  import pkg_resources\n",
        "n1:23:23 [0] NCCL INFO Bootstrap : Using eth0:10.1.0.7<0>\nn1:23:23 [0] NCCL INFO Init COMPLETE\n",
        "step 1 loss 2.4\nstep 2 loss 2.1\n",
        "libibverbs: Warning: couldn't load driver 'libmlx4.so': libmlx4.so: No such file or directory\n",
        "wandb: Currently logged in as: ana. Use `wandb login --relogin` to force relogin\n",
        "OMP: Info #276: omp_set_nested routine deprecated, please use omp_set_max_active_levels instead.\n",
        'perl: warning: Setting locale failed.\n\tLC_ALL = "xx"\n    are supported and installed on your system.\n',
    ],
)
def test_what_any_run_prints_tells_no_side(diagnoser: Diagnoser, log: str, exit_code: int) -> None:
    job = JobFacts(status="failed", exit_code=exit_code)
    [verdict] = diagnoser.diagnose([RawCase(job=job, streams=(LogStream(log, rank=0),))])
    assert verdict.confidence <= 0.5


def test_a_launcher_s_report_of_an_exit_tells_no_side_and_an_error_before_it_does(diagnoser: Diagnoser) -> None:
    report = "srun: error: n1: task 0: Exited with exit code 1"
    alone, after = diagnoser.diagnose([raw(report), raw(f"{labelled('key', 3).raw.streams[0].text}\n{report}")])
    assert alone.confidence <= 0.5
    assert after.side == "user"
    assert after.confidence > 0.5


@pytest.mark.parametrize(("has_events", "contradicted", "doubtful"), [(1, 1, True), (1, 0, False), (0, 1, False)])
def test_a_user_s_failure_that_the_entries_contradict_is_doubtful_where_nodes_reported_events(
    diagnoser: Diagnoser, monkeypatch: pytest.MonkeyPatch, has_events: int, contradicted: int, doubtful: bool
) -> None:
    scores = PackagedClassifier.scores

    def contradicting(self: PackagedClassifier, cases: Sequence[RawCase]) -> PackagedScores:
        found = scores(self, cases)
        return replace(found, labels=[replace(one, contradicted=bool(contradicted)) for one in found.labels])

    monkeypatch.setattr(PackagedClassifier, "scores", contradicting)
    case = replace(labelled("key", 3).raw, node_events=(NodeEvent("cron: job started"),) * has_events)
    [verdict] = diagnoser.diagnose([case])
    assert verdict.side == "user"
    assert (verdict.confidence <= 0.5) == doubtful


@pytest.mark.parametrize("name", [one.name for one in fields(Signature)])
def test_the_version_of_the_rules_changes_with_every_field_of_a_signature(name: str) -> None:
    catalogue = signatures.packaged()
    first, *others = catalogue.entries
    values: dict[str, object] = {
        "pattern": LinePattern("another"),
        "causes": {"USER.1": 0.5, "SYS.1": 0.5},
        "categories": {"GC.3": 1.0},
        "symptoms": {"D.1.2": 1.0},
        "when": When(exit_code=frozenset({77})),
    }
    changed: Any = {name: values.get(name, ("another",))}
    other = Catalogue((replace(first, **changed), *others), catalogue.by_id)
    assert rules_version(other) != rules_version(catalogue)


@pytest.mark.slow
def test_the_version_of_the_rules_is_the_same_in_every_process() -> None:
    program = "from classifiers import diagnoser, signatures; print(diagnoser.rules_version(signatures.packaged()))"
    versions = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert versions == {rules_version(signatures.packaged())}


def test_the_version_of_the_rules_changes_with_the_rules_of_node_events(monkeypatch: pytest.MonkeyPatch) -> None:
    version = rules_version(signatures.packaged())
    monkeypatch.setattr(event_rules, "source", lambda: b"another")
    assert rules_version(signatures.packaged()) != version


def test_a_model_is_loaded_by_its_folder(model: Model, tmp_path: Path) -> None:
    artifact.save(model, tmp_path / "m")
    loaded = Diagnoser.load(tmp_path / "m")
    assert loaded.model == model.label
    with pytest.raises(ModelError):
        Diagnoser.load(tmp_path / "other")
