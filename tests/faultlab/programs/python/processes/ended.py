import signal
import sys
import time

from job import Job

job = Job(steps=4000, pause=0.004, every=5)
if job.how == "trap":
    def leave(number, frame):
        job.say(f"caught signal {number}, saving step and leaving")
        sys.exit(143)

    signal.signal(signal.SIGTERM, leave)
if job.how == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
job.at = job.args.steps
job.run(lambda job: time.sleep(1))
