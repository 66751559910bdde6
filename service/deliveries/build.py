"""Creates the endpoints from their settings."""

import ssl
from collections.abc import Callable

from service.clock import Clock
from service.deliveries.channels.alertmanager import AlertmanagerChannel
from service.deliveries.channels.channel import ALERTS, OWNER
from service.deliveries.channels.chat import ChatChannel
from service.deliveries.channels.http import Poster
from service.deliveries.channels.mail_folder import MailFolderChannel
from service.deliveries.channels.pagerduty import TYPES as PAGERDUTY_TYPES
from service.deliveries.channels.pagerduty import PagerDutyChannel
from service.deliveries.channels.topic import TopicChannel
from service.deliveries.channels.webhook import WebhookChannel
from service.deliveries.config import (
    Chat,
    DeliveryConfig,
    Endpoint,
    MailFolder,
    PagerDuty,
    Topic,
    Webhook,
)
from service.deliveries.drain import Target
from service.errors import ConfigurationError


def targets(config: DeliveryConfig, clock: Clock, topic: Callable[[str], TopicChannel]) -> list[Target]:
    """Every endpoint of the file.

    Args:
        config: the file.
        clock: for signatures and alerts.
        topic: creates the channel of a Kafka topic.

    Raises:
        ConfigurationError: the certificates cannot be read, or a topic has no broker.
    """
    try:
        tls = ssl.create_default_context()
        if config.network.ca_file is not None:
            tls.load_verify_locations(config.network.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"network.ca_file: {config.network.ca_file} can't be used: {error}") from None
    sending = config.sending
    poster = Poster(config.network.allow, timeout_s=sending.timeout_s, answer_bytes=sending.answer_bytes, tls=tls)
    return [_target(one, config, clock, poster, topic) for one in config.endpoint]


def _target(
    one: Endpoint,
    config: DeliveryConfig,
    clock: Clock,
    poster: Poster,
    topic: Callable[[str], TopicChannel],
) -> Target:
    if isinstance(one, Topic):
        return Target(one.name, one.route, topic(one.topic), f"kafka:{one.topic}")
    if isinstance(one, MailFolder):
        mails = MailFolderChannel(one.path, public_url=config.public_url)
        return Target(one.name, one.route, mails, f"folder:{one.path}", digest_s=one.digest_s, to_owner=True)
    url = one.url.get_secret_value()
    if isinstance(one, Chat):
        chat = ChatChannel(
            url,
            config.chat.schemas,
            config.network.allow,
            timeout_s=config.sending.timeout_s,
            public_url=config.public_url,
            recipients=one.recipients,
        )
        return Target(one.name, one.route, chat, url, digest_s=one.digest_s, to_owner=OWNER in url)
    if isinstance(one, Webhook):
        keys = [key.get_secret_value() for key in one.secrets]
        return Target(one.name, one.route, WebhookChannel(url, keys, poster, clock), url)
    if isinstance(one, PagerDuty):
        pagerduty = PagerDutyChannel(
            url,
            one.routing_key.get_secret_value(),
            poster,
            clock,
            severity=config.severity,
            dedup=one.dedup,
            public_url=config.public_url,
        )
        return Target(one.name, one.route, pagerduty, url, types=PAGERDUTY_TYPES)
    alertmanager = AlertmanagerChannel(
        url,
        poster,
        clock,
        severity=config.severity,
        lasts_s=one.lasts_s,
        dedup=one.dedup,
        public_url=config.public_url,
    )
    return Target(one.name, one.route, alertmanager, url, types=ALERTS)
