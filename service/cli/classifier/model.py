"""`faultline model list|show|seal|compare|promote|rollback`: trained models and site layers."""

import argparse
from pathlib import Path
from typing import Any

from classifiers.model import artifact
from classifiers.model.artifact import ModelError
from service import compose, settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.classifier import model_registry
from service.cli.output import add_json_option, json_document
from service.errors import InvalidInput, ModelUnavailable
from service.learning.records import PACKAGED
from service.signatures.reloading_diagnoser import load_model, writable_by_others


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser("model", help="list, show, seal, compare, promote or roll back models")
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="the models next to the one in use; the one in use is marked with a star")
    listing.add_argument("folder", type=Path, nargs="?", help="the folder to search")
    add_json_option(listing)
    show = actions.add_parser("show", help="print a model's manifest as JSON, after checking its files")
    show.add_argument(
        "folder",
        type=Path,
        nargs="?",
        help="the model's folder (FAULTLINE_MODEL_DIR), the id of a site layer, or packaged",
    )
    seal = actions.add_parser("seal", help="seal a model with the key FAULTLINE_MODEL_KEY, after checking its digests")
    seal.add_argument(
        "folder", type=Path, nargs="?", help="the model's folder (FAULTLINE_MODEL_DIR), or the id of a site layer"
    )
    compare = actions.add_parser("compare", help="compare two models on the packaged cases and the golden set")
    for name in ("first", "second"):
        compare.add_argument(name, help="the id of a site layer, or packaged")
    promote = actions.add_parser("promote", help="put a site layer in use that the gate did not refuse")
    promote.add_argument("id", help="the id of the site layer")
    actions.add_parser("rollback", help="return to the model before the one in use")


def run(args: argparse.Namespace) -> int:
    """List, compare or change models, or check one's files and print its manifest.

    Raises:
        ModelUnavailable: there is no model, or it is damaged or not a model of this version.
    """
    configured = settings.read()
    in_use = configured.model_dir
    services = compose.build(configured)
    try:
        if args.action == "list":
            _warn_of_writers(in_use, configured)
            _list(
                args.folder or in_use.parent, configured, model_registry.layers(services), as_json=args.format == "json"
            )
            return 0
        if _on_layers(args, services):
            return 0
    finally:
        services.close()
    is_packaged = str(args.folder) == PACKAGED and not args.folder.exists()
    folder = in_use if args.folder is None or is_packaged else args.folder
    if args.action == "seal":
        _seal(folder, model_registry.key_of(configured))
        return 0
    _warn_of_writers(folder, configured)
    model = load_model(folder, configured.model_key_bytes())
    shown = dict(model.about)
    shown["features_known"] = len(model.text.names)
    shown["abstains_below"] = round(model.calibration.threshold, 4)
    shown["abstains_below_with_node_events"] = round(model.calibration.least_confidence(has_events=True), 4)
    json_document(shown)
    return 0


def _on_layers(args: argparse.Namespace, services: compose.ProcessServices) -> bool:
    """Carry out an action on site layers; False if it is none."""
    if args.action == "compare":
        model_registry.compare(services, args.first, args.second)
    elif args.action == "promote":
        model_registry.promote(services, args.id)
    elif args.action == "rollback":
        model_registry.rollback(services)
    elif args.folder is not None and str(args.folder).startswith(model_registry.PREFIX) and not args.folder.exists():
        action = model_registry.seal if args.action == "seal" else model_registry.show
        action(services, str(args.folder))
    else:
        return False
    return True


def _warn_of_writers(folder: Path, configured: settings.Settings) -> None:
    exposed = writable_by_others(folder, configured.model_key_bytes())
    if exposed is not None:
        output.line(f"warning: {exposed}", error=True)


def _seal(folder: Path, key: bytes) -> None:
    try:
        artifact.seal(folder, key)
    except ModelError as error:
        raise ModelUnavailable(str(error)) from None
    except OSError as error:
        raise InvalidInput(f"{folder}: {error.strerror}") from error
    output.line(f"sealed: {folder / artifact.KEYED_SEAL}")


def _list(folder: Path, configured: settings.Settings, layers: list[dict[str, Any]], *, as_json: bool) -> None:
    in_use, key = configured.model_dir, configured.model_key_bytes()
    # Compiled modules may lie beside the models, with a manifest of their own.
    found = sorted(one.parent for one in folder.glob(f"*/{artifact.MANIFEST}") if artifact.holds_parts(one.parent))
    if not found:
        raise ModelUnavailable(f"no model in {folder}: run faultline train")
    if as_json:
        json_document([*(_described(one, in_use, key) for one in found), *layers])
        return
    for one in found:
        mark = "*" if one == in_use else " "
        try:
            about = artifact.manifest_of(one, key)
        except ModelError as error:
            output.line(f"{mark} {one.name}: not usable: {error}")
            continue
        output.line(
            f"{mark} {one.name}: {about['name']} {about['version']} of {about['created']}, {about['cases']} cases"
        )
    for layer in layers:
        mark = "*" if layer["in_use"] else " "
        output.line(
            f"{mark} {layer['id']}: site layer of {layer['created']:%Y-%m-%d %H:%M}, {layer['labels']} labels, "
            f"gate: {layer['gate']} ({'; '.join(layer['reasons'])[:200]})"
        )


def _described(folder: Path, in_use: Path, key: bytes | None) -> dict[str, Any]:
    common: dict[str, Any] = {"folder": str(folder), "in_use": folder == in_use}
    try:
        about = artifact.manifest_of(folder, key)
    except ModelError as error:
        return common | {"usable": False, "error": str(error)}
    return common | {"usable": True} | {name: about[name] for name in ("name", "version", "created", "cases")}
