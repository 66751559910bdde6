"""`faultline train [--add labels.jsonl] [--output FOLDER]`: fit the classifier and save it for the service."""

import argparse
from pathlib import Path

from classifiers import garbage_collection
from classifiers.composition import training_cases
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError
from classifiers.model import artifact, constants, training
from service import settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.files import check_folder_writable
from service.errors import FieldError, InvalidInput


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "train",
        help="train the text classifier on the corpus, and on labels of your own",
        description=f"Each case of your own (labelled-case/1) counts as {constants.OPERATOR_WEIGHT:g} packaged ones.",
    )
    parser.add_argument("--add", type=Path, action="append", default=[], help="labelled-case/1 lines of your own")
    parser.add_argument("--output", type=Path, help="the model's folder (FAULTLINE_MODEL_DIR)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the folds; the same seed and data give the same model"
    )


def read_cases(files: list[Path]) -> list[labelled_cases.LabelledCase]:
    """Return the labelled cases of an operator's files, without the golden set.

    Raises:
        InvalidInput: a file can't be read, or a line is not a labelled case; the message names the file and line.
    """
    cases: list[labelled_cases.LabelledCase] = []
    for file in files:
        try:
            cases += [one for one in labelled_cases.read_file(file) if not one.provenance.get("golden")]
        except OSError as error:
            raise InvalidInput(f"{file}: {error.strerror}") from error
        except DatasetError as error:
            raise InvalidInput(str(error), (FieldError(error.field, error.expected, error.got),)) from error
    return cases


def _default_output() -> Path:
    """Return FAULTLINE_MODEL_DIR, but never the packaged model's folder: an upgrade would overwrite a trained model."""
    configured = settings.read().model_dir
    return settings.trained_model_dir() if configured == settings.packaged_model_dir() else configured


def run(args: argparse.Namespace) -> int:
    """Train and save the model."""
    folder = args.output or _default_output()
    key = settings.read().model_key_bytes()
    check_folder_writable(folder)  # before a minute of training
    own = read_cases(args.add)  # first: composing the packaged cases takes seconds, and a wrong file ends the command
    with garbage_collection.paused():
        cases = [*training_cases.packaged(training_cases.TRAINING_NOISE), *own]
        try:
            labelled_cases.check_ids(cases)
        except DatasetError as error:
            raise InvalidInput(str(error)) from error
        model, report = training.train(cases, seed=args.seed, progress=lambda line: output.line(line, error=True))
    try:
        artifact.save(model, folder, key)
    except OSError as error:
        raise InvalidInput(f"{folder}: {error.strerror}") from error
    output.line(f"{model.label} in {folder}")
    output.line("seconds: " + ", ".join(f"{step} {value:.1f}" for step, value in report.seconds.items()))
    output.line(
        "right on kinds held out: " + ", ".join(f"{axis} {value:.3f}" for axis, value in report.held_out.items())
    )
    weak = sum(len(codes) for codes in report.weak.values())
    output.line(f"classes with fewer than {labelled_cases.WEAK_CLASS} cases: {weak} (faultline model show lists them)")
    return 0
