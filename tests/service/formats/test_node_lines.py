"""The kinds of lines as programs and kernels print them."""

import pytest

from service.formats.node_records.kinds import of_text


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("NVRM: Xid (PCI:0000:b3:00): 79, pid=4711, name=python, GPU has fallen off the bus.", "gpu_lost"),
        ("NVRM: Xid (0000:01:00): 48, DBE (Double Bit Error) ECC Error", "gpu_memory"),
        ("NVRM: Xid (PCI:0000:0f:00): 119, pid=<unknown>, Timeout after 6s of waiting for RPC response", "gpu_driver"),
        ("NVRM: Xid (PCI:0000:0f:00): 31, pid=4711, name=python, MMU Fault", "gpu_program"),
        ("NVRM: Xid (PCI:0000:0f:00): 137, pid=4711, name=python, NVLink FLA privilege error", "gpu_program"),
        ("Xid 154: GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "gpu_driver"),
        ("Xid 154: GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "other"),
        ("NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", "gpu_lost"),
        ("Node gpu018 drained: gres/gpu count reported lower than configured (7 < 8)", "gpu_lost"),
        ("mlx5_core 0000:86:00.0 mlx5_3: Port: 1 Link DOWN", "link_down"),
        ("Memory cgroup out of memory: Killed process 4567 (python)", "oom_job"),
        ("Out of memory: Killed process 4567 (python) total-vm:8123456kB", "oom_node"),
        ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "memory"),
        ("nfs: server storage1 not responding, timed out", "shared_storage"),
        ("EXT4-fs (nvme0n1): Remounting filesystem read-only", "disk"),
        ("watchdog: BUG: soft lockup - CPU#37 stuck for 26s!", "kernel_stuck"),
        ("Kernel panic - not syncing: Fatal exception in interrupt", "node_down"),
        ("usb 1-1: new high-speed USB device number 4", "other"),
        ("ImportError: cannot import name 'psutil'", "other"),
        ("reset of the gpsu service is done", "other"),
        # A kernel that waits for a container's virtual device, not a port of the machine.
        ("UnregisterNetDevice: unregister_netdevice: waiting for lo to become free. Usage count = 1", "other"),
        ("PSU2 failed: input lost", "power"),
        ("PSU_1 redundancy lost", "power"),
    ],
)
def test_known_lines_are_distinguished(line: str, kind: str) -> None:
    assert of_text(line) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)", "other"),
        ("mce: [Hardware Error]: Machine check events logged", "other"),
        ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: 8c00004000010091", "other"),
        ("{3}[Hardware Error]: event severity: corrected", "other"),
        ("[Hardware Error]: Corrected error, no action required.", "other"),
        ("EDAC MC1: 1 UE memory scrubbing error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0", "memory"),
        ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: bd00004000010091", "memory"),
        ("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000010091", "memory"),
        ("{3}[Hardware Error]: event severity: recoverable", "memory"),
        ("[Hardware Error]: Uncorrected, software restartable error.", "memory"),
    ],
)
def test_corrected_errors_of_memory_are_no_fault(line: str, kind: str) -> None:
    assert of_text(line) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=884120.batch. Some of the step tasks ...", "oom_job"),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/slurm/uid_5/job_7/step_0", "oom_job"),
        ("oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=a,mems_allowed=0", "oom_node"),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "disk"),
        ("XFS (dm-0): Filesystem has been shut down due to log error (0x2).", "disk"),
        ("XFS (dm-0): Corruption of in-memory data detected.  Shutting down filesystem", "disk"),
        (
            "Lustre: a-OST4-osc: Connection to a-OST4 was lost; in progress operations using this service",
            "shared_storage",
        ),
        ("nfs: server storage1 not responding, still trying", "shared_storage"),
        ("NVRM: Xid (PCI:0000:0f:00 GPU-I:05): 48, pid=4711, DBE", "gpu_memory"),
    ],
)
def test_lines_are_known_as_programs_print_them(line: str, kind: str) -> None:
    assert of_text(line) == kind


@pytest.mark.parametrize(
    "line",
    ["nfs: server storage1 OK", "node gpu018 uncordoned", "update_node: node gpu018 undrained by ana"],
)
def test_what_works_again_is_no_fault(line: str) -> None:
    assert of_text(line) == "other"
