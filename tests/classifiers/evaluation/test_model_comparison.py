import pytest
from threadpoolctl import threadpool_limits

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import model_comparison
from tests.classifiers.conftest import few_signatures


@pytest.mark.slow
def test_every_family_of_models_answers_for_programs_it_has_not_seen(
    cases: list[LabelledCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_comparison, "_CHARS", 300)  # small models: a dozen cases tell no more to large ones
    monkeypatch.setattr(model_comparison, "_TREES", 2)
    monkeypatch.setattr(model_comparison, "_LANDMARKS", 50)
    monkeypatch.setattr(model_comparison, "_COMPONENTS", 20)
    monkeypatch.setattr(model_comparison, "_TOLERANCE", 0.1)  # on a dozen cases the solver may not get any closer
    with threadpool_limits(limits=1):  # on a busy machine threads would wait for one another, for minutes
        rows = model_comparison.compare(cases[::6], few_signatures())
    names = [row.name for row in rows]
    assert names[:2] == ["majority", "signatures alone"]
    assert names[-1] == "faultline: linear, then fusion"
    assert len(names) == len(set(names)) == 10
    for row in rows:
        assert set(row.right) == {"side", "cause", "category", "symptom"}
        assert all(0.0 <= value <= 1.0 for value in row.right.values())
    table = model_comparison.markdown(rows)
    assert table.count("\n") == len(rows) + 1
    assert "| majority |" in table
