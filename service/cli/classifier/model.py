"""`faultline model list|show`: list trained models, or show the manifest of one."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from classifiers.model import artifact
from classifiers.model.artifact import ModelError
from service import settings
from service.cli import output
from service.cli.json_output import add_json_option, print_json
from service.errors import ModelUnavailable

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("model", help="list or show trained models")
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="the models next to the one in use; the one in use is marked with a star")
    listing.add_argument("folder", type=Path, nargs="?", help="the folder to search")
    add_json_option(listing)
    show = actions.add_parser("show", help="print a model's manifest as JSON, after checking its files")
    show.add_argument("folder", type=Path, nargs="?", help="the model's folder (FAULTLINE_MODEL_DIR)")


def run(args: argparse.Namespace) -> int:
    """List models, or check one's files and print its manifest.

    Raises:
        ModelUnavailable: there is no model, or it is damaged or not a model of this version.
    """
    in_use = settings.read().model_dir
    if args.action == "list":
        _list(args.folder or in_use.parent, in_use, as_json=args.format == "json")
        return 0
    folder = args.folder or in_use
    try:
        model = artifact.load(folder)
    except ModelError as error:
        raise ModelUnavailable(str(error)) from None
    shown = dict(model.about)
    shown["features_known"] = len(model.text.names)
    shown["abstains_below"] = round(model.calibration.threshold, 4)
    print_json(shown)
    return 0


def _list(folder: Path, in_use: Path, *, as_json: bool) -> None:
    found = sorted(one.parent for one in folder.glob(f"*/{artifact.MANIFEST}"))
    if not found:
        raise ModelUnavailable(f"no model in {folder}: run faultline train")
    if as_json:
        print_json([_described(one, in_use) for one in found])
        return
    for one in found:
        mark = "*" if one == in_use else " "
        try:
            about = artifact.manifest_of(one)
        except ModelError as error:
            output.line(f"{mark} {one.name}: not usable: {error}")
            continue
        output.line(
            f"{mark} {one.name}: {about['name']} {about['version']} of {about['created']}, {about['cases']} cases"
        )


def _described(folder: Path, in_use: Path) -> dict[str, Any]:
    common: dict[str, Any] = {"folder": str(folder), "in_use": folder == in_use}
    try:
        about = artifact.manifest_of(folder)
    except ModelError as error:
        return common | {"usable": False, "error": str(error)}
    return common | {"usable": True} | {name: about[name] for name in ("name", "version", "created", "cases")}
