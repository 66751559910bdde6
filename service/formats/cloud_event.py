"""CloudEvents 1.0 on Kafka, structured and binary: the envelope is validated, its data is in any other format.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md. The
`cloudevents` library validates the attributes; the data is decoded here, by the same rules as every other record. The
envelope's `id` is not the event's identity: the same job with and without an envelope is one event.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from cloudevents.core.exceptions import BaseCloudEventException, CloudEventValidationError
from cloudevents.core.v1.event import CloudEvent

from service.contracts.event import named
from service.errors import FieldError, UnreadableRecord
from service.formats import field_reading

VERSION = "1.0"
REQUIRED = ("specversion", "type", "source", "id")
STRUCTURED = "application/cloudevents"
_STRUCTURED_JSON = "application/cloudevents+json"
# The Kafka binding has an underscore; some producers use the hyphen of HTTP.
_PROBLEMS_MOST = 20
_PREFIXES = ("ce_", "ce-")


def is_structured(headers: Sequence[tuple[str, bytes]]) -> bool:
    """Return whether the value is a whole CloudEvent according to the record's content type.

    Raises:
        UnreadableRecord: a CloudEvent in a form other than JSON, or a batch of them.
    """
    content_type = next((value for name, value in headers if name.lower() == "content-type"), b"")
    kind = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if not kind.startswith(STRUCTURED):
        return False
    if kind not in {STRUCTURED, _STRUCTURED_JSON}:
        raise field_reading.unreadable("content-type", f"{_STRUCTURED_JSON} (one event a record)", kind)
    return True


def binary_attributes(headers: Sequence[tuple[str, bytes]]) -> dict[str, str] | None:
    """Return the attributes of a CloudEvent in binary mode; None if the headers are not those of a CloudEvent.

    Raises:
        UnreadableRecord: an attribute is wrong, or not UTF-8.
    """
    attributes: dict[str, str] = {}
    for header, value in headers:
        name = header.lower()
        if name.startswith(_PREFIXES):
            try:
                attributes[name[3:]] = bytes(value).decode()
            except UnicodeDecodeError:
                raise field_reading.unreadable(header, "UTF-8") from None
    if not all(name in attributes for name in REQUIRED):
        return None
    _check(attributes)
    return attributes


def structured_data(event: Mapping[str, Any]) -> Any:
    """Return the data of a CloudEvent in structured mode: decoded JSON, or bytes if it was base64.

    Raises:
        UnreadableRecord: an attribute is missing or wrong, or there is no data.
    """
    attributes = {name: value for name, value in event.items() if name not in {"data", "data_base64"}}
    _check(attributes)
    encoded = field_reading.text(event, "data_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise field_reading.unreadable("data_base64", "base64") from None
    data = event.get("data")
    if data is None:
        raise field_reading.unreadable("data", "an object, or data_base64")
    return data


def _check(attributes: Mapping[str, Any]) -> None:
    version = attributes.get("specversion")
    if version != VERSION:
        raise field_reading.unreadable("specversion", f'"{VERSION}"', version)
    for name in REQUIRED:
        if not attributes.get(name):
            raise field_reading.unreadable(name, "a string that is not empty")
    checked: dict[str, Any] = dict(attributes)
    at: datetime | None = field_reading.instant(attributes, "time")
    checked.pop("time", None)
    if at is not None:
        checked["time"] = at
    try:
        CloudEvent({name: value for name, value in checked.items() if value is not None})
    except CloudEventValidationError as error:
        found = [
            (name, str(problems[0])) for name, problems in islice(error.errors.items(), _PROBLEMS_MOST) if problems
        ]
        places = tuple(FieldError(named(name), named(problem)) for name, problem in found)
        raise UnreadableRecord("; ".join(place.expected for place in places[:3]), places) from None
    except (BaseCloudEventException, ValueError, TypeError) as error:
        raise field_reading.unreadable("(CloudEvent)", str(error)[:200]) from None
