"""Takes the screenshots of the documents from a running demo: `python -m tests.labs.screenshots [SITE] [FOLDER]`."""

import argparse
import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.flows.chromium import chromium, tab

SITE = "http://127.0.0.1:8080"
FOLDER = Path(__file__).parents[2] / "docs" / "screens"
SIZE = {"width": 1280, "height": 800}
SHOWN = "fallen off the bus"  # the group of failures of the demo that the screenshots show


def groups(site: str) -> list[dict[str, Any]]:
    """Return the groups of the demo, the most expensive ones first."""
    with urllib.request.urlopen(f"{site}/api/v1/groups?sort=-gpu_hours_lost&limit=100") as answer:
        found: list[dict[str, Any]] = json.load(answer)["items"]
    return found


def failure(site: str, number: int) -> dict[str, Any]:
    """Return a failure of the demo."""
    with urllib.request.urlopen(f"{site}/api/v1/failures/{number}") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def latest_report(site: str) -> str:
    """Return the week of the newest published report."""
    with urllib.request.urlopen(f"{site}/api/v1/reports") as answer:
        week: str = json.load(answer)["items"][0]["week"]
    return week


def owners(site: str) -> str:
    """Return the address of the same demo as the owner of some jobs sees it: the next port."""
    host, _, port = site.rstrip("/").rpartition(":")
    return f"{host}:{int(port) + 1}"


def main() -> None:
    """Open each page and save a screenshot of the window."""
    parser = argparse.ArgumentParser(prog="python -m tests.labs.screenshots", description=__doc__)
    parser.add_argument("site", nargs="?", default=SITE)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    args = parser.parse_args()
    group = next(row for row in groups(args.site) if SHOWN in row["title"])
    shown = failure(args.site, group["last_id"])
    pages = {
        "overview": "/?since=28d",
        "failure": f"/failures/{group['last_id']}",
        "group": f"/groups/{group['id']}",
        "board": "/groups?view=board",
        "nodes": "/nodes",
        "node": f"/nodes/{shown['verdict']['cluster']}/{shown['verdict']['suspect']['node']}",
        "incident": "/incidents/1",
        "automation": "/automation",
        "model": "/model",
        "goodput": "/goodput?since=7d",
        "report": f"/reports/{latest_report(args.site)}?cluster={shown['verdict']['cluster']}",
    }
    with chromium() as browser:
        with tab(browser, args.site, viewport=SIZE) as page:
            for name, path in pages.items():
                page.goto(path)
                page.screenshot(path=args.folder / f"{name}.png")
                print(f"{name}: {path}")
        with tab(browser, owners(args.site), viewport=SIZE) as page:
            page.goto("/")
            page.screenshot(path=args.folder / "owner.png")


if __name__ == "__main__":
    main()
