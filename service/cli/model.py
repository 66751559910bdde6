"""`faultline model list|show`: which trained models there are, and what is known of one."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from classifiers.model import artifact
from classifiers.model.artifact import ModelError
from service import settings

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

NO_MODEL = 4


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("model", help="list or show trained models")
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="the models beside the one in use, which is marked with a star")
    listing.add_argument("folder", type=Path, nargs="?", help="look here instead")
    show = actions.add_parser("show", help="what a model was trained on and how it did on kinds held out")
    show.add_argument("folder", type=Path, nargs="?", help="the model's folder (FAULTLINE_MODEL_DIR)")


def run(args: argparse.Namespace) -> int:
    """List models, or print one's manifest after checking all its files."""
    in_use = settings.read().model_dir
    if args.action == "list":
        return _list(args.folder or in_use.parent, in_use)
    folder = args.folder or in_use
    try:
        model = artifact.load(folder)
    except ModelError as error:
        print(f"faultline: {error}", file=sys.stderr)
        return NO_MODEL
    shown = dict(model.about)
    shown["features_known"] = len(model.text.names)
    shown["abstains_below"] = round(model.calibration.threshold, 4)
    print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0


def _list(folder: Path, in_use: Path) -> int:
    found = sorted(one.parent for one in folder.glob(f"*/{artifact.MANIFEST}"))
    if not found:
        print(f"faultline: no model in {folder}: run faultline train", file=sys.stderr)
        return NO_MODEL
    for one in found:
        mark = "*" if one == in_use else " "
        try:
            about = artifact.manifest_of(one)
        except ModelError as error:
            print(f"{mark} {one.name}: not usable: {error}")
            continue
        print(f"{mark} {one.name}: {about['name']} {about['version']} of {about['created']}, {about['cases']} cases")
    return 0
