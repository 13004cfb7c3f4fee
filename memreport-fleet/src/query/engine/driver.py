"""Runs questions with a module of Python.

Standard input is one object: engine, views, questions. The last line of standard output is a list
with an answer for each question: {"columns": [...], "rows": [[...], ...], "seconds": ...}; or, if
the engine fails, {"error": ...}.
"""

import json
import sys
import time


def plain(value):
    """Returns a value as JSON has it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def duckdb(request):
    import duckdb as module

    connection = module.connect()
    for view in request["views"]:
        connection.execute(view["statement"])
    for question in request["questions"]:
        start = time.monotonic()
        cursor = connection.execute(question)
        rows = cursor.fetchall()
        yield [column[0] for column in cursor.description], rows, time.monotonic() - start


def clickhouse(request):
    from chdb import session

    connection = session.Session()
    for setting in request["settings"]:
        connection.query("SET " + setting)
    connection.query("CREATE DATABASE IF NOT EXISTS fleet")
    connection.query("USE fleet")
    for view in request["views"]:
        connection.query(view["statement"])
    for question in request["questions"]:
        start = time.monotonic()
        text = connection.query(question, "JSONCompact")
        seconds = time.monotonic() - start
        answer = json.loads(str(text))
        yield [column["name"] for column in answer["meta"]], answer["data"], seconds


def spark(request):
    import os

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("memreport-fleet")
    master = os.environ.get("MEMREPORT_SPARK_MASTER", "local[*]")
    builder = builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # Two quotes are one, as in the other engines.
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    connection = builder.getOrCreate()
    connection.sparkContext.setLogLevel("ERROR")
    for view in request["views"]:
        partitions = "build STRING"
        if view["name"] != "symbols":
            partitions = "service STRING, version STRING, date STRING, host STRING"
        if view["folder"] is None:
            frame = connection.createDataFrame([], view["columns"])
        else:
            reader = connection.read.schema(view["columns"] + ", " + partitions)
            # Files that are not complete have other names.
            reader = reader.option("pathGlobFilter", "*.parquet")
            frame = reader.parquet(view["folder"])
            if view["condition"]:
                frame = frame.where(view["condition"])
        frame.createOrReplaceTempView(view["name"])
    for question in request["questions"]:
        start = time.monotonic()
        frame = connection.sql(question)
        rows = [list(row) for row in frame.collect()]
        yield frame.columns, rows, time.monotonic() - start
    connection.stop()


def reason(error):
    """Returns the reason of an error, without where it came from."""
    # Spark's errors are Java's: the innermost one has the reason.
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    text = str(error) if java is None else str(java.getMessage())
    return text.split("\n\n")[0].split("\nLINE ")[0].strip() or type(error).__name__


def main():
    request = json.load(sys.stdin)
    run = {"duckdb": duckdb, "clickhouse": clickhouse, "spark": spark}[request["engine"]]
    try:
        answers = [
            {
                "columns": columns,
                "rows": [[plain(v) for v in row] for row in rows],
                "seconds": seconds,
            }
            for columns, rows, seconds in run(request)
        ]
    except Exception as error:
        answers = {"error": reason(error)}
    print()
    print(json.dumps(answers), flush=True)
    sys.exit("error" in answers)


main()
