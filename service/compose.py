"""The composition root: creates the services of a process. Nothing is created at import."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from ipaddress import ip_network
from zoneinfo import ZoneInfo

from classifiers import garbage_collection
from classifiers.model import artifact
from service import periodic
from service.automation.service import Automation
from service.clock import Clock, SystemClock
from service.db.session import Store
from service.deliveries import build as endpoints
from service.deliveries import config as delivery_config
from service.deliveries.channels.topic import TopicChannel
from service.deliveries.drain import Drain
from service.deliveries.runner import Runner
from service.errors import FaultlineError
from service.feedback.service import Feedback
from service.formats import node_events, recognise
from service.good_runs.collection import GoodRuns
from service.groups.count_updater import GroupCountUpdater
from service.learning import build as learning
from service.learning.active_layer import ActiveLayer
from service.learning.promotion import Promotions
from service.learning.retraining import Retraining
from service.learning.shadow_run import ShadowRun
from service.log_storage import build as log_storage
from service.logs.fetch import LogFetcher
from service.maintenance import HourlyCounts, Retention, RetentionDays, Sealing, UndeliverableMessages
from service.messaging.consumer import Consumer, ConsumerLimits
from service.messaging.dead_letters import DeadLetterSender, DeadLetterTopic
from service.messaging.kafka.config import KafkaConfig, topic_clusters
from service.messaging.kafka.connect import ensure_topic
from service.messaging.kafka.consumer_lag import LagReader
from service.messaging.kafka.producer import Producer
from service.messaging.kafka.source import KafkaSource
from service.messaging.source import Source
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.people import build as people
from service.people.audit_heads import AuditHeadExport, AuditHeads
from service.people.login_methods import LoginMethods
from service.periodic import PeriodicTask, running
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.pipeline.revision import Revision
from service.recommend import policy
from service.recommend.advise import Advisor
from service.reports.publish import ReportService
from service.second_reader import asking as second_readings
from service.second_reader import build as second_reader
from service.settings import Settings
from service.signatures.reloading_diagnoser import ReloadingDiagnoser
from service.signatures.signature_folder import SignatureFolder
from service.telemetry import Telemetry
from service.web.services import ModelInfo
from service.web.services import Services as WebServices


@dataclass
class ProcessServices:
    """The services of one process; each is created once, on first access.

    Raises (on access):
        ConfigurationError: a service can't be created from the settings; the message names the setting.
    """

    settings: Settings
    clock: Clock

    @cached_property
    def telemetry(self) -> Telemetry:
        """The metrics of this process."""
        return Telemetry()

    @cached_property
    def store(self) -> Store:
        """The database; its schema is not checked yet."""
        bodies = log_storage.build(self.settings.log_storage(), self.telemetry)
        url, key = self.settings.database_url.get_secret_value(), self.settings.audit_key_bytes()
        return Store(url, clock=self.clock, audit_key=key, log_bodies=bodies)

    @property
    def audit_heads(self) -> AuditHeads:
        """Heads of the audit log, kept outside the database."""
        return AuditHeads(self.settings.audit_head_file, self.settings.audit_key_bytes())

    @cached_property
    def policy(self) -> policy.Policy:
        """The effective mitigation policy."""
        return policy.load(self.settings.policy_file, setting="FAULTLINE_POLICY_FILE")

    @cached_property
    def signatures(self) -> SignatureFolder:
        """The signatures in use."""
        return SignatureFolder(self.settings.signatures_dir, self.clock)

    @cached_property
    def diagnoser(self) -> ReloadingDiagnoser:
        """The trained classifier with the signatures in use."""
        key, folder = self.settings.model_key_bytes(), self.settings.model_dir
        layer = ActiveLayer(self.store, self.clock, key).current
        with garbage_collection.paused():
            return ReloadingDiagnoser(folder, self.signatures, layer=layer, setting="FAULTLINE_MODEL_DIR", key=key)

    @cached_property
    def shadow_run(self) -> ShadowRun:
        """Compares a candidate with the model in use on stored failures."""
        return ShadowRun(self.store, Advisor(self.policy, self.clock))

    @property
    def retraining(self) -> Retraining:
        """Fits site layers on the labels, and promotes them."""
        catalogue, key = self.signatures.current().layered.catalogue, self.settings.model_key_bytes()
        return Retraining(self.store, self.clock, self.diagnoser.packaged, catalogue, key, shadow=self.shadow_run)

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of reports and pages."""
        return ZoneInfo(self.settings.timezone)

    @cached_property
    def group_count_updater(self) -> GroupCountUpdater:
        """Keeps the groups of failures up to date."""
        return GroupCountUpdater(self.store, self.clock)

    @cached_property
    def automation(self) -> Automation:
        """Automatic actions on failures."""
        return Automation(self.store, self.policy, self.clock, self.telemetry)

    @cached_property
    def feedback(self) -> Feedback:
        """Records corrections and confirmations of verdicts."""
        advisor = Advisor(self.policy, self.clock)
        return Feedback(self.store, self.clock, advisor, self.automation.withdraw_unsupported, zone=self.zone)

    @cached_property
    def reports(self) -> ReportService:
        """The weekly quality reports."""
        own = self.settings
        return ReportService(self.store, self.zone, self.clock, price=(own.gpu_hour_price, own.gpu_hour_currency))

    @cached_property
    def people(self) -> LoginMethods:
        """Login and roles of people."""
        return people.build(self.settings.login())

    @cached_property
    def retention(self) -> Retention:
        """Deletes old data as the retention settings say."""
        read = self.settings
        days = RetentionDays(
            rows=read.retention_rows_days,
            verdicts=read.retention_verdicts_days,
            logs=read.retention_logs_days,
            done=read.retention_done_days,
        )
        return Retention(self.store, self.clock, days)

    @cached_property
    def sealing(self) -> Sealing:
        """Seals verdicts, so that later changes are detected."""
        return Sealing(self.store, self.clock)

    @cached_property
    def fleet_settings(self) -> FleetSettings:
        """Settings of node histories."""
        days = self.settings.retention_node_events_days
        kept = None if days == 0 else timedelta(days=days)
        return FleetSettings(half_life=timedelta(days=self.settings.node_half_life_days), keep_events=kept)

    @cached_property
    def node_statistics_updater(self) -> NodeStatisticsUpdater:
        """Counts jobs and failures by node."""
        return NodeStatisticsUpdater(self.store, self.clock, self.fleet_settings)

    @cached_property
    def node_event_intake(self) -> NodeEventIntake:
        """Stores node events."""
        return NodeEventIntake(self.store, self.clock, self.fleet_settings)

    @cached_property
    def node_event_kafka(self) -> KafkaConfig | None:
        """Configuration of the node-event consumer, in its own consumer group; None if no topic is set."""
        topic = self.settings.node_event_topic
        return None if topic is None else self.kafka.for_node_events(topic)

    def node_consumer(self, config: KafkaConfig, member: str) -> Consumer:
        """Create the consumer of node events."""
        return Consumer(
            KafkaSource(config, member=member),
            node_events.parse,
            self.node_event_intake.handle,
            DeadLetterSender(self.producer, self.settings.dead_letter_topic),
            clock=self.clock,
            telemetry=self.telemetry,
            limits=ConsumerLimits(dead_letters=self.settings.dead_letter_limit),
        )

    @property
    def second_reader(self) -> second_readings.SecondReadings | None:
        """Asks a language model about doubtful failures; None unless an endpoint is set."""
        return second_reader.build(self.settings.second_reader(), self.store, self.clock, self.telemetry)

    @contextmanager
    def maintenance(self) -> Iterator[None]:
        """Run the periodic tasks during the `with` block; leases let one process at a time run each."""
        audit_heads = AuditHeadExport(self.store, self.audit_heads, self.clock)
        tasks = [
            *learning.tasks(
                store=self.store,
                clock=self.clock,
                telemetry=self.telemetry,
                diagnoser=self.diagnoser,
                shadow_run=self.shadow_run,
                retraining=lambda: self.retraining,
                schedule=self.settings.retrain_schedule(),
            ),
            PeriodicTask(self.reports.run_if_due, periodic.REPORTS_S, name="weekly report"),
            PeriodicTask(self.node_statistics_updater, periodic.NODE_STATISTICS_S, name="node statistics"),
            PeriodicTask(self.revision.revise_by_new_evidence, periodic.LATE_REVISIONS_S, name="revision by evidence"),
            PeriodicTask(self.automation.tick, periodic.AUTOMATION_S, name="resubmissions and incidents"),
            PeriodicTask(self.retention.run_if_due, periodic.RETENTION_S, name="retention"),
            PeriodicTask(self.sealing.seal_due, periodic.SEALS_S, name="sealing of verdicts"),
            PeriodicTask(audit_heads, periodic.AUDIT_HEADS_S, name="export of audit heads"),
            PeriodicTask(self.group_count_updater, periodic.GROUP_COUNTS_S, name="counts of groups"),
            PeriodicTask(self.feedback.draw, periodic.AUDIT_SAMPLES_S, name="audit sample"),
            PeriodicTask(HourlyCounts(self.store, self.clock), periodic.HOURLY_COUNTS_S, name="hourly counts"),
        ]
        if self.delivery is None:
            undeliverable = UndeliverableMessages(self.store, self.clock)
            tasks.append(PeriodicTask(undeliverable, periodic.UNDELIVERABLE_MESSAGES_S, name="undeliverable messages"))
        if (asking := self.second_reader) is not None:
            tasks.append(PeriodicTask(asking, second_readings.EVERY_S, name="second reader"))
        with running(tasks, self.telemetry.task_success):
            yield

    @cached_property
    def logs(self) -> LogFetcher:
        """The log reader."""
        read, networks = self.settings, [ip_network(one, strict=False) for one in self.settings.log_networks]
        return LogFetcher(read.log_roots, any_owner=read.log_roots_any_owner, networks=networks)

    @cached_property
    def diagnosis_tools(self) -> DiagnosisTools:
        """What new diagnoses and revisions share."""
        return DiagnosisTools(
            store=self.store,
            logs=self.logs,
            classifier=self.diagnoser,
            policy=self.policy,
            clock=self.clock,
            telemetry=self.telemetry,
            automation=self.automation,
            log_deadline_s=self.settings.log_deadline_s,
        )

    @cached_property
    def revision(self) -> Revision:
        """The revision of stored verdicts."""
        return Revision(self.diagnosis_tools)

    @cached_property
    def diagnose(self) -> Diagnose:
        """The diagnosis of batches of events."""
        return Diagnose(self.diagnosis_tools, self.revision, GoodRuns(self.logs, self.settings.good_run_logs))

    @cached_property
    def kafka(self) -> KafkaConfig:
        """Configuration of the Kafka connection."""
        return self.settings.kafka()

    @cached_property
    def producer(self) -> Producer:
        """The Kafka producer."""
        return Producer(self.kafka)

    @cached_property
    def delivery(self) -> delivery_config.DeliveryConfig | None:
        """Configuration of deliveries; None: there are none."""
        path = self.settings.delivery_file
        return None if path is None else delivery_config.load(path)

    @contextmanager
    def delivering(self) -> Iterator[None]:
        """Send notifications during the `with` block, with separate threads and database connections."""
        if self.delivery is None:
            yield
            return
        # Separate from the consumer, so that neither waits for a connection or a broker call of the other.
        store = Store(self.settings.database_url.get_secret_value(), clock=self.clock, pool_size=2)
        drain = Drain(
            store,
            endpoints.targets(self.delivery, self.clock, self._topic),
            self.delivery.sending,
            owner=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            clock=self.clock,
            telemetry=self.telemetry,
        )
        try:
            with Runner(drain):
                yield
        finally:
            with suppress(FaultlineError):
                store.close()

    def _topic(self, topic: str) -> TopicChannel:
        return TopicChannel(topic, Producer(self.kafka), lambda: ensure_topic(self.kafka, topic))

    def consumer(self, member: str | None = None) -> Consumer:
        """Create the consumer of the worker on Kafka; `member` is the static member name in the group."""
        return self.consumer_of(
            KafkaSource(self.kafka, member=member), DeadLetterSender(self.producer, self.settings.dead_letter_topic)
        )

    def consumer_of(self, source: Source, dead_letters: DeadLetterTopic) -> Consumer:
        """Create the consumer of the worker on any source."""
        return Consumer(
            source,
            recognise.parse,
            self.diagnose,
            dead_letters,
            clock=self.clock,
            telemetry=self.telemetry,
            idle=self.revision.revise_by_late_logs,
            limits=ConsumerLimits(dead_letters=self.settings.dead_letter_limit),
        )

    @cached_property
    def _lag_reader(self) -> LagReader:
        return LagReader(self.kafka)

    def measure_lag(self) -> None:
        """Measure the consumer lag, for a process that does not consume itself.

        Raises:
            Unavailable: the broker does not answer; the metric is absent until it does.
        """
        self._lag_reader.measure(self.telemetry)

    def web(self) -> WebServices:
        """Create the services of API and pages."""
        found, manifest = self.diagnoser, artifact.manifest_of(self.settings.model_dir)
        return WebServices(
            store=self.store,
            ingest=self.diagnose,
            clock=self.clock,
            telemetry=self.telemetry,
            host=self.settings.host,
            timezone=self.settings.timezone,
            settings=self.settings.shown(),
            model=ModelInfo(lambda: found.model, lambda: found.rules, manifest),
            signatures=self.signatures,
            topics=topic_clusters(self.settings.kafka_topics),
            node_event_topics=topic_clusters((topic,) if (topic := self.settings.node_event_topic) else ()),
            automation=self.automation,
            node_event_intake=self.node_event_intake,
            people=self.people,
            intake_limit=self.settings.intake_limit(),
            feedback=self.feedback,
            promotions=Promotions(self.store, found.packaged.id, self.settings.model_key_bytes()),
            report_receivers=delivery_config.report_receivers(self.delivery),
            gpu_hour_price=self.settings.gpu_hour_price,
            gpu_hour_currency=self.settings.gpu_hour_currency,
        )

    def close(self) -> None:
        """Release the resources of all created services."""
        for name in ("logs", "_lag_reader", "producer"):
            if name in self.__dict__:
                getattr(self, name).close()
        if "store" in self.__dict__:
            with suppress(FaultlineError):
                self.store.close()


def build(settings: Settings, clock: Clock | None = None) -> ProcessServices:
    """Create the services of one process."""
    return ProcessServices(settings, clock or SystemClock())
