import os

from flow import Flow

flow = Flow()
words = {}
if flow.how == "count" and flow.mine:
    words["num_processes"] = flow.world + 2
if flow.how == "twin" and flow.mine:
    words["process_id"] = 0
if flow.how == "high" and flow.mine:
    words["process_id"] = flow.world + 3
if flow.how == "none":
    words["coordinator_address"] = None
if flow.how == "backend":
    flow.prepare()
if flow.how == "crash" and flow.mine:
    raise OSError(os.path.join("data", os.environ["DATASET"]))
flow.join(**words)
if flow.how == "again":
    flow.join(**words)
flow.run(lambda _: None)
