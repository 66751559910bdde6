"""Takes the screenshots of the documents from a running demo: `python -m tests.labs.screenshots [SITE] [FOLDER]`."""

import argparse
import base64
import json
import struct
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from service.demo.story import DEGRADED
from tests.flows.chromium import chromium, tab

SITE = "http://127.0.0.1:8080"
FOLDER = Path(__file__).parents[2] / "docs" / "screens"
SIZE = {"width": 1280, "height": 800}
TALLER = {"failure": 1200}  # down to the evidence
SHOWN = "fallen off the bus"  # the group of failures of the demo that the screenshots show

# The colours of a picture, at most 256: the most frequent ones, and no two that look alike. Each pixel has the number
# of the nearest one. This halves the file; text stays sharp, unlike in a format for photographs.
TO_PALETTE = """async png => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(png), one => one.charCodeAt(0))]));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer), counts = new Map();
  for (const one of pixels) counts.set(one, (counts.get(one) || 0) + 1);
  const parts = one => [one & 255, (one >> 8) & 255, (one >> 16) & 255];
  const apart = (a, b) => a.reduce((sum, value, at) => sum + (value - b[at]) ** 2, 0);
  const palette = [], numbers = new Map();
  for (const one of [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a))) {
    const colour = parts(one);
    let nearest = 0;
    palette.forEach((other, at) => { if (apart(colour, other) < apart(colour, palette[nearest])) nearest = at; });
    const alike = palette.length ? apart(colour, palette[nearest]) <= 48 : false;
    numbers.set(one, alike || palette.length === 256 ? nearest : palette.push(colour) - 1);
  }
  const text = Array.from(pixels, one => String.fromCharCode(numbers.get(one))).join("");
  return [image.width, image.height, palette.flat(), btoa(text)];
}"""


def small(page: Page, png: bytes) -> bytes:
    """The same picture with a palette of 256 colours, as PNG; `page` is any page of a browser."""
    width, height, palette, encoded = page.evaluate(TO_PALETTE, base64.b64encode(png).decode())
    numbers = base64.b64decode(encoded)
    rows = b"".join(b"\0" + numbers[at : at + width] for at in range(0, len(numbers), width))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(palette)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


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


def with_advice(site: str, group: int) -> dict[str, Any]:
    """Return the newest failure of a group on the tour's node whose job has not succeeded since, for its advice."""
    with urllib.request.urlopen(f"{site}/api/v1/failures?group={group}&limit=100") as answer:
        found = [failure(site, row["id"]) for row in json.load(answer)["items"]]
    found = [one for one in found if one["verdict"]["suspect"]["node"] == DEGRADED]
    return next((one for one in found if all(a["status"] != "succeeded" for a in one["attempts"])), found[0])


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
    try:
        found = groups(args.site)
    except urllib.error.URLError as error:
        parser.exit(2, f"no demo answers at {args.site} ({error.reason}): start one with `make demo`\n")
    group = next(row for row in found if SHOWN in row["title"])
    shown = with_advice(args.site, group["id"])
    pages = {
        "overview": "/?since=28d",
        "failure": f"/failures/{shown['failure']['id']}",
        "group": f"/groups/{group['id']}",
        "board": "/groups?view=board",
        "nodes": "/nodes",
        "node": f"/nodes/{shown['verdict']['cluster']}/{DEGRADED}",
        "incident": "/incidents/1",
        "automation": "/automation",
        "model": "/model",
        "goodput": "/goodput?since=7d",
        "report": f"/reports/{latest_report(args.site)}?cluster={shown['verdict']['cluster']}",
    }
    with chromium() as browser, browser.new_page() as painter:
        for site, wanted in ((args.site, pages), (owners(args.site), {"owner": "/"})):
            with tab(browser, site, viewport=SIZE) as page:
                for name, path in wanted.items():
                    page.set_viewport_size({"width": SIZE["width"], "height": TALLER.get(name, SIZE["height"])})
                    page.goto(path)
                    (args.folder / f"{name}.png").write_bytes(small(painter, page.screenshot()))
                    print(f"{name}: {path}")


if __name__ == "__main__":
    main()
