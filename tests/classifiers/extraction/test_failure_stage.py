from classifiers import signatures
from classifiers.case_builder import build_case
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction import failure_stage
from classifiers.model.fitting import fit_text
from classifiers.model.line_weights import EQUAL
from classifiers.model.samples import samples
from classifiers.model.training_table import table_of
from classifiers.model.vectorizer import features
from tests.classifiers.packaged_catalogue import EXTRACTOR

SAVING = """Epoch 3/20
 812/812 [====] - 41s 50ms/step - loss: 0.3120
  File "/srv/mara/fit.py", line 88, in <module>
    twin.fit(images, callbacks=[ModelCheckpoint("best.h5")])
  File "/opt/py/keras/callbacks.py", line 719, in on_epoch_end
    self.model.save(filepath, overwrite=True)
TypeError: can't pickle _thread.RLock objects
"""
LOADING = """[rank 2] sampler of 4 replicas ready
  File "/srv/mara/fit.py", line 61, in <module>
    for images, labels in DataLoader(records, num_workers=6):
  File "/opt/py/torch/utils/data/dataloader.py", line 918, in __init__
    w.start()
TypeError: can't pickle _thread.RLock objects
"""


def extracted(text: str) -> dict[str, float]:
    raw = build_case({"status": "failed", "gpus": 4, "logs": [{"rank": 0, "tail": text}]})
    return features(EXTRACTOR.extract(raw))


def test_every_word_belongs_to_a_cue() -> None:
    known = failure_stage.cues()
    assert set(known.names) > {"install", "group", "broadcast", "save", "hangs"}
    found = failure_stage.find_cues("    dist.init_process_group('nccl')\n    ... it hangs here", lambda: True)
    assert found.found == ("group", "hangs")
    assert found.last_stage == "group"  # a symptom is no stage


def test_the_stage_named_last_counts() -> None:
    assert (
        failure_stage.find_cues("hvd.init()\nhvd.broadcast_parameters(net)\n", lambda: True).last_stage == "broadcast"
    )
    assert (
        failure_stage.find_cues("hvd.broadcast_parameters(net)\nloss.backward()\n", lambda: True).last_stage
        == "backward"
    )
    assert failure_stage.find_cues("nothing to tell", lambda: True) == failure_stage.StageCues()


def test_the_same_error_is_read_with_the_calls_before_it() -> None:
    saving, loading = extracted(SAVING), extracted(LOADING)
    assert "g1:save" in saving
    assert "g:training" in saving
    assert "g1:data" in loading
    assert "g:save" not in loading


def test_a_short_log_is_read_whole_and_a_long_one_near_the_failure() -> None:
    far = "hvd.broadcast_parameters(net)\n" + "all is well here\n" * 30 + "KeyError: 'lane'\n"
    assert "g:broadcast" in extracted(far)
    assert "g:broadcast" not in extracted(far.replace("all is well here\n", "all is well here\n" * 20))


def test_stage_and_hang_make_one_feature() -> None:
    assert "g2:group hangs" in extracted("dist.init_process_group('gloo')\nnothing more for two hours\n")
    assert "g2:backward hangs" in extracted("loss.backward()\nnothing more for two hours\n")


def test_progress_and_hang_make_one_feature() -> None:
    begun = extracted("loss.backward() never returns on rank 1, after some 300 batches\n")
    begins = extracted("dist.init_process_group('gloo') does not return at startup, two machines\n")
    assert {"g2:backward hangs", "g2:backward under-way"} <= begun.keys()
    assert {"g2:group hangs", "g2:group at-start", "g2:group several-nodes"} <= begins.keys()
    assert not {"g:at-start"} & begun.keys()
    assert not {"g:under-way"} & begins.keys()


def test_a_node_event_alone_has_no_stage() -> None:
    raw = build_case({"status": "node_fail", "node_events": [{"node": "n1", "text": "NVRM: Xid 79"}]})
    assert not [name for name in features(EXTRACTOR.extract(raw)) if name[:2] == "g:"]


def labelled(number: int, symptom: str, text: str) -> LabelledCase:
    side, cause = ("user", "USER.1") if symptom == "D.1.6" else ("system", "SYS.1")
    labels = {"side": side, "cause": cause, "category": "none", "symptom": symptom, "retry": "futile"}
    return labelled_cases.parse(
        {
            "id": f"{symptom}-{number}",
            "group": symptom,
            "kind": f"{symptom}-{number}",
            "event": {"status": "failed", "gpus": 4, "logs": [{"rank": 0, "tail": text}]},
            "labels": {**labels, "root_rank": 0, "root_line": None},
            "provenance": {"origin": "composed"},
        },
        "here",
    )


def test_only_the_symptom_depends_on_the_stage() -> None:
    last = "TypeError: can't pickle {} objects\n"
    saved = ("net.save('a.h5')\n", "torch.save(twin, there)\n", "  in save_checkpoint\n", "  in on_epoch_end\n")
    loaded = ("for one in DataLoader(two)\n", "  in _get_iterator\n", "batch_sampler=mine\n", "num_workers=9\n")
    cases = [labelled(at, "D.1.6", before + last.format(f"n{at}")) for at, before in enumerate(saved)]
    cases += [labelled(at, "C.2", before + last.format(f"m{at}")) for at, before in enumerate(loaded)]
    taken = samples(cases, signatures.Catalogue((), {}), EQUAL, 0)
    table = table_of(taken)
    text = fit_text(table, range(len(taken)), ("side", "symptom"))
    matrix, _ = text.matrix([extracted(SAVING), extracted(LOADING)])
    head = text.head("symptom")
    assert [head.classes[at] for at in text.probabilities(matrix)["symptom"].argmax(axis=1)] == ["D.1.6", "C.2"]
    rows = [at for at, name in enumerate(text.names) if name.startswith(("g:", "g1:", "g2:"))]
    assert rows
    assert not text.weights[rows, : text.head("symptom").begin].any()


def test_cues_of_the_affected_part_are_read_by_every_head() -> None:
    hub = extracted("  File \"/opt/py/kubespawner/spawner.py\", line 812, in start\nKeyError: 'pool'\n")
    own = extracted("  File \"/srv/mara/train.py\", line 812, in start\nKeyError: 'pool'\n")
    assert "f:platform-part" in hub
    assert "f:own-script" in own
    assert "f:platform-part" not in own
    assert not any(name.startswith("g") and "platform-part" in name for name in hub)


def test_an_event_repeated_for_hours_is_a_cue() -> None:
    assert "f:for-hours" in extracted("Warning  FailedMount  4m (x61 over 7h)  kubelet  volume lost\n")
    assert "f:for-hours" not in extracted("Warning  FailedMount  4s (x3 over 19s)  kubelet  volume lost\n")


def test_chinese_words_are_found_without_spaces() -> None:
    assert failure_stage.find_cues("四张卡，昨晚起没有动静了", lambda: True).found == ("hangs",)
    assert "slow" in failure_stage.find_cues("zero3很慢", lambda: True).found
    assert "errs" in failure_stage.find_cues("多卡error: 2", lambda: True).found
    assert "hangs" not in failure_stage.find_cues("unhung", lambda: True).found
