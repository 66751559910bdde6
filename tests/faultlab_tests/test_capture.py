"""Real runs of tiny programs become labelled cases."""

import json
import os
import sys
from pathlib import Path

import pytest

from classifiers.data import labelled_cases
from tests.faultlab import cases, induced_faults
from tests.faultlab.capture import Lab
from tests.faultlab.cases import NotAsDeclared, Stream, case, find_root, relabel, tail
from tests.faultlab.synthetic_identity import identity
from tests.faultlab_tests.conftest import Declare
from tests.labs.need import missing, need


def test_a_run_becomes_a_labelled_case_that_tells_nothing_of_this_machine(declare: Declare) -> None:
    plan = declare("import os\nprint(os.getcwd())\nprint('step 1')\nint('x' + os.environ['LAB_SEED'])\n")
    made = json.loads(cases.line_of(case(Lab().run(plan, 3))))
    parsed = labelled_cases.parse(made, "test")
    assert parsed.labels.root_line == "ValueError: invalid literal for int() with base 10: 'x3'"
    assert parsed.labels.root_rank == 0
    assert made["event"]["exit_code"] == 1
    assert made["provenance"]["origin"] == "captured"
    assert made["provenance"]["run"] == "family/one@base#3"
    who = identity("family/one@base#3", 1)
    assert who.folder in made["event"]["logs"][0]["tail"]
    text = json.dumps(made)
    for result in (str(Path(__file__).parents[2]), sys.prefix, os.uname().nodename + '"', "/tmp/fl", "faultlab/"):
        assert result not in text
    assert "/root/" not in text


def test_a_killed_rank_is_identified_by_its_signal_and_others_keep_their_logs(declare: Declare) -> None:
    code = (
        "import os, time\nfor step in range(100 if os.environ['RANK'] != '1' else 100_000):\n"
        "    print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], 'step', step)\n"
        "    time.sleep(0.02)\n"
    )
    plan = declare(
        code,
        'launcher = "ranks"\nranks = 3\nnodes = 3\nlogs = "ranks"\nroot = { rank = 1 }\n'
        'faults = [{ kind = "signal", signal = "KILL", rank = 1, after = "rank 1 of 3 step 5$" }]\n',
    )
    captured = Lab().run(plan, 1)
    made = case(captured)
    streams = {log["rank"]: log["tail"] for log in made["event"]["logs"] if log["stream"] == "stdout"}
    assert set(streams) == {0, 1, 2}
    assert made["event"]["status"] == "failed"
    assert "step 99" in streams[0]
    assert made["event"].get("signal") == 9 or made["event"]["exit_code"] == 137
    assert len(set(made["event"]["nodes"])) == 3


def test_the_console_of_all_ranks_is_one_stream(declare: Declare) -> None:
    plan = declare(
        "import os\nprint('from', os.environ['RANK'])\nraise KeyError(os.environ['RANK'])\n",
        'launcher = "ranks"\nranks = 2\nlogs = "console"\nroot = { rank = 1, line = "KeyError: .1" }\n',
    )
    made = case(Lab().run(plan, 1))
    (log,) = made["event"]["logs"]
    assert log["rank"] is None
    assert "from 0" in log["tail"]
    assert "from 1" in log["tail"]
    assert made["labels"]["root_line"] == "KeyError: '1'"


def test_the_time_limit_ends_a_run_and_all_it_started(declare: Declare) -> None:
    code = (
        "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('on')\ntime.sleep(60)\n"
    )
    plan = declare(code, "timeout_s = 0.6\nroot = {}\n")
    captured = Lab().run(plan, 1)
    assert case(captured)["event"]["status"] == "timeout"
    assert captured.outcome.ended - captured.outcome.started < 45  # what it started would take 60


def test_a_file_fault_waits_for_its_line(declare: Declare) -> None:
    code = (
        "import os, time\nopen('flag', 'w').close()\nprint('ready')\nwhile os.path.exists('flag'):\n"
        "    time.sleep(0.01)\nopen('flag')\n"
    )
    plan = declare(code, 'faults = [{ kind = "unlink", at = "flag", after = "ready" }]\n')
    assert "FileNotFoundError" in str(case(Lab().run(plan, 1))["labels"]["root_line"])


def test_a_run_that_does_not_fail_as_declared_is_refused(declare: Declare) -> None:
    with pytest.raises(NotAsDeclared, match="ended well"):
        case(Lab().run(declare("print('fine')\n"), 1))
    with pytest.raises(NotAsDeclared, match="no line matches"):
        case(Lab().run(declare("1 / 0\n", 'root = { line = "KeyError" }\n'), 1))


def test_preparing_leaves_files_that_faults_then_damage(declare: Declare) -> None:
    code = (
        "import json, sys\nif sys.argv[1:] == ['make']:\n    json.dump([1, 2], open('d.json', 'w'))\n"
        "else:\n    json.load(open('d.json'))\n"
    )
    plan = declare(code, 'prepare = ["make"]\nfaults = [{ kind = "truncate", at = "d.json", bytes = 3 }]\n')
    assert "JSONDecodeError" in str(case(Lab().run(plan, 1))["labels"]["root_line"])


def test_the_root_line_is_found_by_its_message_not_by_code_in_a_traceback(declare: Declare) -> None:
    plan = declare("", 'root = { rank = 2, line = "ValueError" }\n')
    text = '[rank2]:   File "a.py", line 1\n[rank2]:     raise ValueError(x)\n[rank2]: ValueError: 7'
    assert find_root(plan, [Stream(None, "n", "stderr", text)], ()) == (2, "[rank2]: ValueError: 7")


def test_frames_of_the_lab_itself_are_left_out() -> None:
    text = (
        'said:\n  File "/x/faultlab/zygote.py", line 225, in <module>\n    main()\n'
        '  File "/x/zygote.py", line 9 in become\n'
        '  File "/w/train.py", line 3, in <module>\n    go()\n'
    )
    assert cases.without_lab(text) == 'said:\n  File "/w/train.py", line 3, in <module>\n    go()\n'


def test_relabelling_takes_the_present_declaration_and_keeps_what_was_captured(declare: Declare) -> None:
    made = case(Lab().run(declare("1 / 0\n", 'root = { line = "ZeroDivision" }\n'), 1))
    plan = declare("", 'ok = { cause = ["USER.5"] }\nroot = { rank = "all", line = "division by zero" }\n')
    again = relabel(made, plan)
    assert again["event"] == made["event"]
    assert again["labels"]["cause_ok"] == ["USER.1", "USER.5"]
    assert (again["labels"]["root_rank"], again["labels"]["root_line"]) == (None, "ZeroDivisionError: division by zero")


def test_a_tail_holds_whole_lines_within_the_limit() -> None:
    text = "\n".join(f"line {n} é" for n in range(9000))
    cut = tail(text, 1000)
    assert len(cut.encode()) <= 1000
    assert text.endswith(cut)
    assert cut.startswith("line ")
    assert tail("short") == "short"


def test_a_cut_rank_receives_nothing(declare: Declare) -> None:
    if os.geteuid() != 0:
        missing("network namespaces need root")
    need("ip")
    code = (
        "import os, socket, time\nat = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
        "if os.environ['RANK'] == '0':\n    peer = socket.create_server(at).accept()[0]\n"
        "    while not os.path.exists('over'):\n        peer.send(b'.')\n        time.sleep(0.1)\n"
        "else:\n    link = None\n    while link is None:\n        try:\n"
        "            link = socket.create_connection(at, timeout=120)\n"
        "        except ConnectionRefusedError:\n            time.sleep(0.05)\n"
        "    link.settimeout(3)\n    print('joined')\n"
        "    try:\n        while link.recv(1):\n            pass\n"
        "    finally:\n        open('over', 'w').close()\n"
    )
    plan = declare(
        code,
        'launcher = "ranks"\nranks = 2\nlogs = "ranks"\nroot = { rank = 1, line = "^TimeoutError" }\n'
        'faults = [{ kind = "cut", how = "down", rank = 1, after = "joined" }]\n',
    )
    try:
        captured = Lab().run(plan, 1)
    except induced_faults.Impossible as reason:
        missing(str(reason))
    assert case(captured)["labels"]["root_rank"] == 1
