"""`faultline evaluate --cases FILE --second-reader-export FILE | --second-reader-answers FILE`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.model.artifact import Model
from classifiers.signatures import Catalogue
from service.cli import output
from service.cli.files import check_readable, write_output
from service.errors import InvalidInput
from service.second_reader import measuring


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--second-reader-export",
        type=Path,
        metavar="FILE",
        help="write the questions to a second reader about the cases on which the classifier is in doubt",
    )
    parser.add_argument(
        "--second-reader-answers",
        type=Path,
        metavar="FILE",
        help="score recorded answers to these questions: lines with case, content, usage",
    )


def is_wanted(args: argparse.Namespace) -> bool:
    """Whether one of the options is given.

    Raises:
        InvalidInput: it is given with options that do not go with it.
    """
    given = [args.second_reader_export, args.second_reader_answers]
    if given == [None, None]:
        return False
    if args.cases is None or None not in given:
        raise InvalidInput("a second reader is measured on --cases FILE, with either an export or answers")
    if args.noise or args.compare or args.html is not None or args.json is not None:
        raise InvalidInput(
            "a second reader cannot be measured together with others: leave out --noise, --compare, --html and --json"
        )
    return True


def run(args: argparse.Namespace, cases: Sequence[LabelledCase], model: Model, catalogue: Catalogue) -> int:
    """Classify the cases, then write the questions or score the answers."""
    verdicts = Diagnoser(model, catalogue).diagnose([case.raw for case in cases])
    if args.second_reader_export is not None:
        questions = measuring.questions(cases, verdicts)
        write_output(args.second_reader_export, measuring.export(questions))
        output.line(f"{len(questions)} questions about {len(cases)} cases")
        return 0
    file = args.second_reader_answers
    check_readable([str(file)])
    try:
        with labelled_cases.opened_lines(file) as lines:
            answers = measuring.read_answers(lines, file.name)
    except DatasetError as error:
        raise InvalidInput(str(error)) from error
    output.document(measuring.text(measuring.gain(cases, verdicts, answers)))
    return 0
