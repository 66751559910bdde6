"""Of several entries that fit a line, the one that knows more leads."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR


def entries_of_first_line(log: str) -> set[str]:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(log, stream="stderr"),))
    first = next(item for item in EXTRACTOR.extract(raw).items if item.role == "initiating")
    return {hit.id for hit in first.hits if hit.role == "initiating" and not hit.id.startswith("events.")}


@pytest.mark.parametrize(
    ("log", "entry"),
    [
        (
            "RuntimeError: TPU initialization failed: open(/dev/vfio/2): Device or resource busy",
            "accelerators.device-held",
        ),
        ("RuntimeError: Unable to initialize backend 'tpu': Invalid TPU_HOST_BOUNDS", "accelerators.refused-setting"),
        ("libfabric error: queue not opened: Cannot allocate memory", "network.ib-memlock"),
        ("OSError: [Errno 23] Too many open files in system: '/a/b.tar'", "python.files-of-system"),
        ("OSError: [Errno 5] Input/output error: '/mnt/beegfs/a.bin'", "python.io-error-remote"),
        ("OSError: [Errno 113] No route to host: '/proj/a.bin'", "paths.behind-a-network"),
        ("OSError: [Errno 113] No route to host", "python.no-route"),
        ("Head /v2/a/manifests/1: denied: Permission denied: account lab-7 is suspended", "standing.account-suspended"),
        ("Head /v2/a/manifests/1: denied: Permission denied: no role in lab-7", "python.permission"),
        ("libfabric:1:efa: error: receiver was reached but handshake failed", "network.efa-setup"),
        ("libfabric:1:efa: error: the completion of a send failed", "network.efa"),
        ("RuntimeError: unable to mmap 64 bytes from file </torch_9_1>: Cannot allocate memory (12)", "pytorch.shm"),
    ],
)
def test_why_a_device_or_a_file_cannot_be_used_comes_before_that_it_cannot(log: str, entry: str) -> None:
    assert entries_of_first_line(log) == {entry}


def test_the_limit_of_locked_memory_leads_what_the_fabric_reports_besides() -> None:
    log = "NET/OFI: provider efa failed\nmemlock limits are set too low\nRuntimeError: unhandled system error"
    assert entries_of_first_line(log) == {"network.ib-memlock"}


def test_an_io_error_of_a_local_file_is_one_of_the_node() -> None:
    assert entries_of_first_line("OSError: [Errno 5] Input/output error: '/local/sets/a.bin'") == {"python.io-error"}


def test_what_a_driver_does_about_a_gpu_that_hangs_is_a_consequence_of_the_hang() -> None:
    hang = "kernel: amdgpu 0000:83:00.0: amdgpu: ring sdma1.3 timeout, signaled seq=7, emitted seq=9"
    after = [
        "kernel: amdgpu 0000:83:00.0: amdgpu: GPU reset begin!",
        "kernel: amdgpu 0000:83:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x1 address=0x0 flags=0x0]",
    ]
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream("\n".join([hang, *after]), stream="stderr"),))
    roles = {item.text: item.role for item in EXTRACTOR.extract(raw).items}
    assert roles[hang] == "initiating"
    assert [roles[line] for line in after] == ["cascade", "context"]


def test_a_right_that_a_daemon_lacks_on_its_own_path_is_no_matter_of_the_user() -> None:
    line = "slurmstepd: error: open /sys/fs/cgroup/job_8/memory.max: Permission denied"
    assert "paths.of-daemon" in entries_of_first_line(line)
    assert "paths.of-daemon" not in entries_of_first_line("slurmstepd: error: open /home/ana/x: Permission denied")


@pytest.mark.parametrize(
    ("log", "entry"),
    [
        (
            "cp: Aufruf von stat f\u00fcr 'a' nicht m\u00f6glich: Datei oder Verzeichnis nicht gefunden",
            "python.file-not-found",
        ),
        ("ls: a: Aucun fichier ou dossier de ce type", "python.file-not-found"),
        ("mkdir: no se puede crear el directorio: Permiso denegado", "python.permission"),
        ("cp: Auf dem Ger\u00e4t ist kein Speicherplatz mehr verf\u00fcgbar", "python.no-space"),
        ("touch: impossible: Syst\u00e8me de fichiers accessible en lecture seulement", "python.read-only"),
        ("ssh: connect to host n1 port 22: Verbindungsaufbau abgelehnt", "python.connection-refused"),
        ("OSError: [Errno 5] Eingabe-/Ausgabefehler", "python.io-error"),
        ("run.sh: Zeile 3: nvcc: Kommando nicht gefunden.", "shell.command-not-found"),
    ],
)
def test_messages_of_the_system_in_other_languages_are_the_same_messages(log: str, entry: str) -> None:
    assert entry in entries_of_first_line(log)


@pytest.mark.parametrize(
    "message",
    ["a: Wrote only 3072 of 10240 bytes", "a: Nur 3072 von 10240 Bytes geschrieben", "a: seulement 9 octets sur 16"],
)
def test_that_a_file_was_written_in_part_leads_that_the_archiver_ends(message: str) -> None:
    log = f"tar: {message}\ntar: Exiting with failure status due to previous errors"
    assert entries_of_first_line(log) == {"storage.short-write"}
