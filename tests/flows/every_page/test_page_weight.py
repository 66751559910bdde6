"""How much a browser loads for each page: with an empty cache, and when the page is opened again."""

import pytest
from playwright.sync_api import Browser

from tests.bench.browser import WEIGHT_AIM, WIDTHS, empty_context, is_page, opened
from tests.flows.every_page.page_paths import PATHS
from tests.service.web.test_app import filled

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

FILES = ("Script", "Stylesheet", "Font")


@pytest.fixture(scope="module")
def pages(browser: Browser, site: str) -> list[str]:
    with empty_context(browser, site, WIDTHS[0]) as context:
        paths = [filled(path).replace("2026-W46", "2026-W47") for path in PATHS]
        return [path for path in paths if is_page(context.request.get(path, max_redirects=0))]


def test_no_page_is_heavy_and_its_styles_and_scripts_are_compressed_and_sent_once(
    browser: Browser, site: str, pages: list[str]
) -> None:
    assert len(pages) > 25
    for path in pages:
        seen = opened(browser, site, path, WIDTHS[1], 1)
        assert 0 < seen.cold["Document"] <= seen.weight < WEIGHT_AIM, path
        assert 0 < sum(seen.cold[kind] for kind in FILES) < 100_000, path
        assert sum(seen.warm[kind] for kind in FILES) == 0, path
        assert seen.warm["Document"] > 0, path
