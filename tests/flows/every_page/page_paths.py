"""The routes that answer with a page, for what is checked or measured on every page; a new page is among them."""

from tests.service.web.test_app import WANTED

NO_PAGES = {
    *("/live", "/failures/{failure_id}/live", "/favicon.ico", "/metrics"),
    "/failures/{failure_id}/logs/{attempt_id}/{index}",
    "/failures/{failure_id}/logs/{attempt_id}/{index}/lines.json",
}
PATHS = sorted(
    path
    for method, path in WANTED
    if method == "GET" and not path.startswith(("/api/", "/health/")) and path not in NO_PAGES
)
