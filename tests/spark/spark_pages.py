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
    found = context.statusStore().stageList(None, False, False, no_quantiles, None)
    return [found.apply(number) for number in range(found.length())]


def writes_on_pages(spark: Any) -> list[list[str]]:
    """Files, rows and bytes of each query, as the page of SQL words them; empty for one that has written nothing."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    found = store.executionsList()
    return [_metrics(store, found.apply(number)) for number in range(found.length())]


def _metrics(store: Any, execution: Any) -> list[str]:
    values = store.executionMetrics(execution.executionId())
    metrics = [execution.metrics().apply(number) for number in range(execution.metrics().length())]
    told = {each.name(): values.get(each.accumulatorId()) for each in metrics}
    return [told[name].get() if name in told and told[name].isDefined() else "" for name in WRITE_METRICS]
