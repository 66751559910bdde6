from dataclasses import replace

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation.held_out import family_of


def test_a_family_is_the_program_or_the_file_of_kinds_of_a_case(cases: list[LabelledCase]) -> None:
    captured = replace(cases[0], provenance={"origin": "captured", "program": "ddp-oom"})
    assert family_of(captured) == "ddp-oom"
    assert family_of(replace(cases[0], provenance={})) == cases[0].group
