"""Builds the second reader from its settings."""

from service.clock import Clock
from service.db.session import Store
from service.second_reader.asking import SecondReadings
from service.second_reader.openai_endpoint import OpenAIEndpoint
from service.second_reader.options import SecondReaderOptions
from service.telemetry import Telemetry


def build(
    options: SecondReaderOptions | None, store: Store, clock: Clock, telemetry: Telemetry
) -> SecondReadings | None:
    """The periodic task, None without an endpoint."""
    if options is None:
        return None
    endpoint = OpenAIEndpoint(
        options.url, options.model, options.api_key, timeout_s=options.timeout_s, allow_http=options.allow_http
    )
    return SecondReadings(store, clock, telemetry, endpoint, hourly_limit=options.hourly_limit)
