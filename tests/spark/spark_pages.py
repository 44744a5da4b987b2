"""What Spark's pages show of what was written, from the stores that they are drawn from."""

from __future__ import annotations

from typing import Any

WRITE_METRICS = "number of written files", "number of output rows", "written output"


def stages_on_pages(spark: Any) -> list[tuple[int, int]]:
    """Rows and bytes that each stage of the application has written."""
    return [(stage.outputRecords(), stage.outputBytes()) for stage in _stages(spark)]


def stages_tried_again(spark: Any) -> int:
    """How many attempts at stages were not the first."""
    return sum(stage.attemptId() > 0 for stage in _stages(spark))


def _stages(spark: Any) -> list[Any]:
    context = spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    no_quantiles = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)
    return _each(context.statusStore().stageList(None, False, False, no_quantiles, None))


def writes_on_pages(spark: Any) -> list[list[str]]:
    """Files, rows and bytes of each node of a query's plan that writes, as the page of SQL words them."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    queries = [execution.executionId() for execution in _each(store.executionsList())]
    found = [_metrics(store.executionMetrics(query), node) for query in queries for node in _nodes(store, query)]
    return [told for told in found if all(told)]


def _nodes(store: Any, query: int) -> list[Any]:
    return _each(store.planGraph(query).allNodes())


def _metrics(values: Any, node: Any) -> list[str]:
    """By node: others of the same plan count their rows under the same name."""
    told = {metric.name(): values.get(metric.accumulatorId()) for metric in _each(node.metrics())}
    return [told[name].get() if name in told and told[name].isDefined() else "" for name in WRITE_METRICS]


def _each(found: Any) -> list[Any]:
    return [found.apply(number) for number in range(found.length())]
