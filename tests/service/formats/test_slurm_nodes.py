import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import UnreadableRecord
from service.formats.slurm.nodes import NODES_MOST, expand_nodes


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (None, ()),
        ("", ()),
        ("(null)", ()),
        ("None assigned", ()),
        ("gpu7", ("gpu7",)),
        ("gpu[001-003,007]", ("gpu001", "gpu002", "gpu003", "gpu007")),
        ("a[1-2],b3,a[2-3]", ("a1", "a2", "b3", "a3")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("gpu-1.cluster.example", ("gpu-1.cluster.example",)),
    ],
)
def test_expressions(expression: str | None, names: tuple[str, ...]) -> None:
    assert expand_nodes(expression, "nodes") == names


@pytest.mark.parametrize(
    "expression",
    [
        "a[1-", "a]", "a[[1]]", "a[1\n]", "a[5-1]", "a[x-y]", "a[1-999999999]", "a" + "[1-9]" * 9, "x" * 300 + "[1-2]",
        "a[" + ",".join(["1-99999"] * 50) + "]", "a[1-60000],b[1-60000]", "a[" + "9" * 5000 + "-" + "9" * 5001 + "]",
    ],
)  # fmt: skip
def test_what_is_none_or_too_much_is_refused(expression: str) -> None:
    with pytest.raises(UnreadableRecord, match="nodes"):
        expand_nodes(expression, "nodes")


@given(st.text(alphabet="ab[]-,019 \n", max_size=60))
def test_any_text_is_names_or_refused(expression: str) -> None:
    try:
        names = expand_nodes(expression, "nodes")
    except UnreadableRecord:
        return
    assert len(names) <= NODES_MOST
    assert len(set(names)) == len(names)
