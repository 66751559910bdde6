"""A real Apache Kafka broker, private to the test run: one node, KRaft, on loopback, removed afterwards.

Its jars are downloaded once and kept in ~/.cache/faultline-labs (or $TEST_LABS). Needs Java 17 and Maven.
"""

import base64
import fcntl
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from service.messaging.kafka.connect import NetClient
from tests.labs import certificates
from tests.labs.need import missing, need
from tests.labs.ports import free_port

POM = Path(__file__).with_name("kafka-broker.pom.xml")
START_SECONDS = 300
# Large records must reach the consumer, so that its handling of them can be tested.
LARGEST_REQUEST = 256 * 1024 * 1024
# A short-lived broker: little memory, fast start.
JAVA = ("java", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
HEAP = "768m"

# The account of the port with authentication.
USER, PASSWORD = "reader", "right-and-long"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

PROPERTIES = """\
process.roles=broker,controller
node.id={node}
listeners={listeners}
advertised.listeners={advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
{keys}
listener.name.sasl_ssl.plain.sasl.jaas.config={login} required user_{user}="{password}";
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login} required user_{user}="{password}";
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
{quorum}
log.dirs={data}
num.partitions=3
socket.request.max.bytes={largest}
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=4
offsets.topic.replication.factor={copies}
default.replication.factor={copies}
min.insync.replicas={in_sync}
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable={creates}
"""


def jars() -> Path:
    """Return the folder with the broker's jars, downloaded if missing; skips the test if they are unavailable."""
    cache = Path(os.environ.get("TEST_LABS") or Path.home() / ".cache" / "faultline-labs")
    target = cache / f"kafka-{_version()}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test runs download once
        if target.is_dir():
            return target
        need("mvn")
        fetched = Path(tempfile.mkdtemp(prefix="kafka-", dir=cache))
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={fetched}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
            cwd=cache,
        )
        if done.returncode != 0 or not any(fetched.glob("kafka_*.jar")):
            shutil.rmtree(fetched)
            missing(f"the broker's jars could not be fetched: {done.stdout.strip()[:300]}")
        fetched.rename(target)
    return target


def _version() -> str:
    return POM.read_text(encoding="utf-8").split("<version>", 1)[1].split("<", 1)[0]


def new_id() -> str:
    """Return a random id for a cluster."""
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return made if not made.startswith("-") else f"A{made[1:]}"  # an id, not an option


@dataclass(frozen=True)
class Cluster:
    """The place of a broker in a cluster. `controllers`: the port of each node's controller; `name`: its id."""

    node: int
    controllers: tuple[int, ...]
    name: str
    heap: str = "256m"

    @property
    def quorum(self) -> str:
        """The setting that lists the controllers."""
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(self.controllers, start=1))
        return f"controller.quorum.voters={voters}"


@dataclass
class Broker:
    """A broker with its data; it can be killed and restarted with all acknowledged records.

    `advertised_port`: where clients shall connect to instead of `port`, such as that of a proxy before it.
    `creates_topics`: whether it creates a topic that somebody asks for.
    """

    folder: Path
    libs: Path
    port: int
    guarded_port: int
    encrypted_port: int | None = None
    cluster: "Cluster | None" = None
    advertised_port: int | None = None
    creates_topics: bool = True
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def guarded_address(self) -> str:
        """Like `address`, with SASL PLAIN as USER with PASSWORD."""
        return f"127.0.0.1:{self.guarded_port}"

    @property
    def encrypted_address(self) -> str:
        """Like `guarded_address`, with TLS and `certificate`; only if requested."""
        return f"127.0.0.1:{self.encrypted_port}"

    @property
    def certificate(self) -> Path:
        """The certificate of the authority of the encrypted port, which clients have to trust."""
        return self.folder / "certificate.pem"

    @property
    def address(self) -> str:
        """The value for bootstrap_servers."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers requests."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it; returns immediately."""
        properties = self.folder / "server.properties"
        if not properties.exists():
            self._format(properties)
        with (self.folder / "broker.log").open("ab") as log:
            # The broker must not outlive the tests, however they end.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._java(), "kafka.Kafka", str(properties)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.folder,
            )

    def wait(self) -> None:
        """Wait until it answers requests."""
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / "broker.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the broker did not come up: {tail}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it gracefully."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with SIGKILL, like a lost machine."""
        self._end(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze it during the `with` block: it accepts connections and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def restart(self, down_s: float = 0.0) -> None:
        """Kill it, wait, and start it again with its data."""
        self.kill()
        time.sleep(down_s)
        self.start()

    def create_topic(self, name: str, partitions: int = 3, **config: str) -> str:
        """Create a topic; return its name. `config`: topic settings, dots written as underscores."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self.admin()
        try:
            admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        except TopicAlreadyExistsError:
            pass
        finally:
            admin.close()
        return name

    def admin(self) -> KafkaAdminClient:
        """Return a client to inspect the broker with; the caller closes it."""
        return KafkaAdminClient(bootstrap_servers=self.address, bootstrap_timeout_ms=10_000, kafka_client=NetClient)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        admin = None
        with suppress(KafkaError):
            admin = KafkaAdminClient(bootstrap_servers=self.address, bootstrap_timeout_ms=2_000, kafka_client=NetClient)
        if admin is None:
            with warnings.catch_warnings():  # a client that finds no broker leaves its socket open
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
            return False
        try:
            admin.list_topics()
        except KafkaError:
            return False
        finally:
            admin.close()
        return True

    def _format(self, properties: Path) -> None:
        listeners = {"PLAINTEXT": self.port, "SASL_PLAINTEXT": self.guarded_port}
        if self.encrypted_port:
            listeners["SASL_SSL"] = self.encrypted_port
        place = self.cluster or Cluster(1, (free_port(),), new_id(), HEAP)
        listeners["CONTROLLER"] = place.controllers[place.node - 1]
        advertised = listeners | {"PLAINTEXT": self.advertised_port or self.port}
        alone = self.cluster is None
        properties.write_text(
            PROPERTIES.format(
                node=place.node,
                quorum=f"controller.quorum.bootstrap.servers=127.0.0.1:{place.controllers[0]}"
                if alone
                else place.quorum,
                copies=len(place.controllers),
                in_sync=len(place.controllers) // 2 + 1,
                listeners=_listed(listeners),
                advertised=_listed(advertised),
                keys=f"ssl.keystore.type=PEM\nssl.keystore.location={self._keys()}" if self.encrypted_port else "",
                data=self.folder / "data",
                largest=LARGEST_REQUEST,
                login=LOGIN,
                creates=str(self.creates_topics).lower(),
                user=USER,
                password=PASSWORD,
            ),
            encoding="utf-8",
        )
        tool = [*self._java(), "kafka.tools.StorageTool", "format", *(["--standalone"] if alone else [])]
        done = subprocess.run(
            [*tool, "-t", place.name, "-c", str(properties)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            properties.unlink()
            raise RuntimeError(f"the broker's data folder could not be made: {done.stdout}")

    def _keys(self) -> Path:
        """Create a key and a certificate for 127.0.0.1; by openssl, since each start of Java takes a second."""
        certificate, key = certificates.authority(self.folder, "certificate").issue("broker")
        keys = self.folder / "keys.pem"
        keys.write_text(
            "".join(Path(part).read_text(encoding="ascii") for part in (key, certificate)), encoding="ascii"
        )
        return keys

    def _java(self) -> list[str]:
        heap = HEAP if self.cluster is None else self.cluster.heap
        return [*JAVA, f"-Xmx{heap}", "-cp", f"{self.libs}/*"]

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(30)
        self.process = None


def _listed(ports: Mapping[str, int]) -> str:
    """Listeners as the broker's settings have them."""
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


@contextmanager
def broker(
    *,
    port: int | None = None,
    encrypted: bool = False,
    advertised_port: int | None = None,
    creates_topics: bool = True,
) -> Iterator[Broker]:
    """Yield a broker, on a free port or a given one; if requested, also with an encrypted port."""
    need("java", "setpriv")
    libs = jars()
    folder = Path(tempfile.mkdtemp(prefix="faultline-kafka-"))
    made = Broker(folder, libs, port or free_port(), free_port(), free_port() if encrypted else None)
    made.advertised_port, made.creates_topics = advertised_port, creates_topics
    try:
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """`python -m tests.labs.kafka [PORT]`: run a broker until interrupted; its data is then deleted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9092
    with suppress(KeyboardInterrupt), broker(port=port) as made:
        print(f"Kafka is at {made.address}; Ctrl-C ends it and removes its data", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
