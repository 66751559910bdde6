from pathlib import Path

import pytest

from classifiers.model import artifact
from tests.classifiers.conftest import small_model
from tests.service.explain.documented_output import Example, examples, printed

# These parts come from the logs alone; tests/flows/test_readme.py compares the verdicts, with the trained model.
PARTS = ("Lines that matter", "Job end", "Read")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("model") / "model"
    artifact.save(small_model(), where)
    return where


def parts(output: str) -> dict[str, str]:
    """The parts of an output by their first words, without what follows them."""
    lines = output.splitlines()
    found = {}
    for name in PARTS:
        begin = next(number for number, line in enumerate(lines) if line.startswith(name))
        end = next((number for number in range(begin + 1, len(lines)) if not lines[number].startswith(" ")), len(lines))
        found[name] = "\n".join(lines[begin:end])
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda one: f"{one.document.name}-{one.log}")
def test_the_lines_in_the_documents_are_those_that_are_printed(example: Example, model: Path) -> None:
    assert parts(printed(example.log, "--model", str(model))) == parts(example.output)


def test_three_logs_are_explained_in_the_guide_and_one_in_the_readme() -> None:
    assert [one.document.name for one in examples()] == ["README.md", "explain.md", "explain.md", "explain.md"]
