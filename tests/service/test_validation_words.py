"""Words of what a field should be: they continue "expected ..."."""

from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from service import validation_words


class _Inner(BaseModel):
    x: int = 1


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=1, le=9)] = 1
    share: float = 0.5
    on: bool = False
    name: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    code: Annotated[str, Field(pattern="^M[0-9]$")] = "M1"
    at: AwareDatetime | None = None
    plain: datetime | None = None
    inner: _Inner = _Inner()
    items: Annotated[list[int], Field(max_length=2)] = []
    checked: str = ""

    @field_validator("checked")
    @classmethod
    def _check(cls, value: str) -> str:
        if value:
            raise ValueError("an empty text")
        return value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"count": 0}, "greater than or equal to 1"),
        ({"count": "x"}, "a whole number"),
        ({"count": 1.5}, "a whole number"),
        ({"share": "x"}, "a valid number"),
        ({"on": "maybe"}, "a valid boolean"),
        ({"name": ""}, "at least 1 character"),
        ({"name": "abcd"}, "at most 3 characters"),
        ({"code": "x"}, "a text of the form ^M[0-9]$"),
        ({"at": "2026-11-20T03:41:57"}, 'a time as RFC 3339 with zone, such as "2026-11-20T03:41:57Z"'),
        (
            {"at": "2026-02-30T03:41:57Z"},
            'a time as RFC 3339 with zone, such as "2026-11-20T03:41:57Z" (day value is outside expected range)',
        ),
        (
            {"plain": "28d"},
            'a time as RFC 3339 with zone, such as "2026-11-20T03:41:57Z" (input is too short)',
        ),
        ({"inner": 5}, "a JSON object"),
        ({"items": [1, 2, 3]}, "at most 2 items after validation"),
        ({"unheard_of": 1}, "a known field"),
        ({"checked": "x"}, "an empty text"),
    ],
)
def test_they_say_what_is_expected(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate(given)
    assert [validation_words.expected(one) for one in caught.value.errors()] == [expected]
