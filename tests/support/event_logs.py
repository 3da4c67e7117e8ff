"""A Spark home with event logs, and which executors they say did the tasks of each job."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark


def spark_home(folder):
    """The installed Spark under another path, for a cluster of its own puts its workers' files into it."""
    folder.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (folder / each.name).symlink_to(each)
    conf = folder / "settings"
    conf.mkdir()
    logs = folder / "events"
    logs.mkdir()
    settings = {"eventLog.enabled": "true", "eventLog.dir": logs.as_uri(), "ui.enabled": "false"}
    (conf / "spark-defaults.conf").write_text("".join(f"spark.{key} {value}\n" for key, value in settings.items()))
    return {"SPARK_HOME": str(folder), "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}


def jobs_of(folder):
    """Description of each Spark job in the event logs, and the executors that did its tasks."""
    texts = [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()]
    events = [json.loads(line) for text in texts for line in text.splitlines() if line]
    jobs, stages = {}, {}
    for event in events:
        if event["Event"] == "SparkListenerJobStart":
            name = event["Properties"]["spark.job.description"]
            stages.update(dict.fromkeys(event["Stage IDs"], name))
        elif event["Event"] == "SparkListenerTaskEnd":
            jobs.setdefault(stages[event["Stage ID"]], []).append(event["Task Info"]["Executor ID"])
    return jobs
