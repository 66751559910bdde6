"""The chain of a failure is told in sentences, in the same words on pages and in the terminal."""

from service.contracts.verdict import ChainPart
from service.headlines.chain import chain_sentences

XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=77, GPU has fallen off the bus."


def test_each_step_says_what_happened_where_and_how_much_later() -> None:
    chain = [
        ChainPart(kind="beginning", text="IndexError: list index out of range", rank=21, node="gpu02", lines=1),
        ChainPart(kind="consequence", text="x", title="A gloo peer closed the connection", ranks=31, after_s=604.0),
        ChainPart(kind="teardown", text="y", title="torchrun's summary", rank=3, after_s=0.2),
        ChainPart(kind="consequence", text="other lines that followed", lines=7, ranks=2),
        ChainPart(kind="end", text="failed, exit code 1"),
        ChainPart(kind="set_aside", text=XID, title="of a node that the job did not use", node="gpu77", lines=3),
    ]
    assert [one.text.replace("\u00a0", " ") for one in chain_sentences(chain)] == [
        "IndexError: list index out of range (rank 21, gpu02)",
        "A gloo peer closed the connection (31 other ranks, 10 min 4 s later)",
        "torchrun's summary (rank 3)",
        "7 other lines that followed (2 other ranks)",
        "The job ended: failed, exit code 1",
        "Explains nothing here: of a node that the job did not use (gpu77, 3 such lines)",
    ]
    assert chain_sentences(chain)[-1].line == XID


def test_nothing_is_shown_where_only_the_end_is_known() -> None:
    assert chain_sentences([ChainPart(kind="end", text="timeout")]) == []
