import subprocess
import sys

from job import Job


def fault(job):
    words = [sys.executable, "prepare.py", job.name]
    if job.how == "check":
        subprocess.run(words, check=True)
    elif job.how == "output":
        subprocess.check_output(words, stderr=subprocess.DEVNULL)
    elif job.how == "shell":
        subprocess.check_call(" ".join(words) + " | sort > out.txt; exit ${PIPESTATUS[0]}", shell=True, executable="/bin/bash")
    elif job.how == "code":
        sys.exit(subprocess.call(words))
    elif job.how == "time":
        subprocess.run(words, check=True, timeout=0.4)
    elif job.how == "communicate":
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        out, _ = child.communicate()
        for line in out.splitlines():
            job.say(f"prepare: {line}")
        if child.returncode:
            sys.exit(child.returncode)


Job().run(fault)
