"""Names of nodes, as schedulers, kernels and logs write them."""

import pytest

from classifiers.contracts import JobFacts, Suspect
from classifiers.node_names import short_name, written_out
from classifiers.suspected_place import suspect_of_job


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ai[08-10] down", "ai08,ai09,ai10 down"),
        ("reboot of ai[3,11-12]", "reboot of ai3,ai11,ai12"),
        ("sssd[812] and ai[9-2]", "sssd812 and ai[9-2]"),
        ("ai[1-999999]", "ai[1-999999]"),
        ("jobs on ai08..ai10 end", "jobs on ai08,ai09,ai10 end"),
        ("ai-r2 to ai-r4", "ai-r2,ai-r3,ai-r4"),
        ("ai9..ai3 and step 2 to 4", "ai9..ai3 and step 2 to 4"),
        ("[12.3] host_[1,2] and ai-[3-4] to ai7", "[12.3] host_1,host_2 and ai-3,ai-4 to ai7"),
    ],
)
def test_lists_of_nodes_are_written_out(text: str, written: str) -> None:
    assert written_out(text) == written


def test_a_suspect_in_other_letters_or_with_a_domain_is_a_node_of_the_job() -> None:
    job = JobFacts(status="failed", nodes=("GPU017", "GPU018.orion"))
    for name in ("GPU018", "gpu018", "gpu018.orion.example"):
        suspect = Suspect(rank=3, node=name)
        assert suspect_of_job(suspect, job, "crash") == suspect
    assert suspect_of_job(Suspect(rank=3, node="gpu019"), job, "crash") == Suspect(rank=3)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("GPU017.orion.example", "gpu017"),
        ("10.0.3.17", "10.0.3.17"),
        ("cn-hangzhou.192.168.0.5", "cn-hangzhou.192.168.0.5"),
        ("ip-10-0-3-17.ec2.internal", "ip-10-0-3-17"),
        ("gpu017.rack4", "gpu017"),
        ("gpu1.2.3.4.example", "gpu1"),
    ],
)
def test_an_address_is_no_domain(name: str, short: str) -> None:
    assert short_name(name) == short
