"""The questions behind a verdict, as the failure page answers them."""

from service.web.pages.failure.questions import questions

LINE = {"rank": 3, "node": "gpu1", "stream": "stderr", "line": 18233, "role": "initiating", "signature": "cuda.launch"}


def test_each_question_has_its_answer_in_words() -> None:
    verdict = {
        "side": "hardware",
        "confidence": 0.97,
        "abstained": False,
        "evidence": [
            LINE,
            {"rank": 4, "role": "cascade", "stream": "stderr"},
            {"rank": 4, "role": "context", "stream": "stderr", "note": "written before the job started"},
        ],
        "context": [{"side": "hardware", "weight": 2.0}, {"side": "user", "weight": -1.0}],
        "missing": ["logs of rank 5"],
    }
    found = dict(questions(verdict))
    assert found["Does a line match a known signature?"] == "Yes: cuda.launch (1 line)."
    assert found["Which line came first?"] == "stderr line 18,233 of rank 3 on gpu1."
    assert "1 line that the first failure caused" in found["Did other lines follow from it?"]
    assert found["Was evidence set aside?"] == "Yes. 1 line: written before the job started."
    assert found["Do node events and other failures agree?"] == "1 report for hardware, 1 report against this verdict."
    assert found["Was expected evidence missing?"] == "Yes: logs of rank 5."
    assert found["How clear is the side?"] == "97\u00a0% for hardware."


def test_an_undecided_verdict_says_so_and_no_verdict_has_no_questions() -> None:
    found = dict(questions({"side": "user", "confidence": 0.4, "abstained": True, "evidence": []}))
    assert found["How clear is the side?"].startswith("Not clear enough: 40")
    assert found["Does a line match a known signature?"].startswith("No.")
    assert questions(None) == []


def test_node_events_that_were_set_aside_do_not_agree_with_the_verdict() -> None:
    event = {"stream": "node", "node": "gpu7", "role": "context", "note": "of another node"}
    question = "Do node events and other failures agree?"
    verdict = {"side": "user", "confidence": 0.9, "abstained": False, "evidence": [LINE, event]}
    assert dict(questions(verdict))[question] == "No: the events of gpu7 were set aside. Nothing else was reported."
    verdict["evidence"] = [LINE, event, {**event, "node": "gpu8", "note": None}]
    assert "Yes: the evidence contains events of gpu8." in dict(questions(verdict))[question]
