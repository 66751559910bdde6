from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks.webhooks import Webhook

from service.deliveries.channels import signing
from tests.service.deliveries.sample_messages import KEY, SECRET

BODY = b'{"type":"job.diagnosed","timestamp":"2026-11-20T10:15:00Z","data":{"job_id":"4711"}}'
AT = datetime.fromtimestamp(1795169700, UTC)
WANTED = "v1,biHTVvi7k8Xk8k1HrIGcHxMMrpN16438tsp9XV0syMU="


@pytest.mark.parametrize("at", [AT, AT.astimezone(timezone(timedelta(hours=2)))])
def test_the_same_instant_is_signed_the_same_in_every_zone(at: datetime) -> None:
    made = signing.headers([signing.key_of(SECRET)], "msg_01JEXAMPLE0001", at, BODY)
    assert made["webhook-timestamp"] == "1795169700"
    assert made["webhook-signature"] == WANTED


def test_while_a_key_is_rotated_receivers_of_either_accept() -> None:
    other = bytes(range(40, 72))
    made = signing.headers([other, KEY], "msg_1", datetime.now(UTC), BODY)
    for key in (other, KEY):
        assert Webhook(key).verify(BODY, made)


@pytest.mark.parametrize("secret", ["whsec_c2hvcnQ=", "whsec_*", "", "whsec_" + "AAAA" * 30])
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        signing.key_of(secret)
    assert not secret or secret not in str(caught.value)
