"""A Spark of the tests' own, in this process and two threads; starting it takes some seconds."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def running_spark() -> Iterator[Any]:
    """A session, with its files in a temporary folder."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed: apt-get install openjdk-17-jre-headless")
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install privacyfunnel[spark]")
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="pfunnel-spark-")
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    building = SparkSession.builder.master("local[2]").appName("tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.artifact.isolation.enabled": "false",
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyspark speaks of newer versions of other libraries
            session = building.config(map=settings).getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            try:
                yield session
            finally:
                session.stop()
    finally:
        if before is None:
            del os.environ["PYSPARK_PYTHON"]
        else:
            os.environ["PYSPARK_PYTHON"] = before
        shutil.rmtree(folder, ignore_errors=True)
