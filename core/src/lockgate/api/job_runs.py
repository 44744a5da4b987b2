"""A `JobRun` of the real world: the store behind a URL, the plugins, this process's clock."""

from __future__ import annotations

from lockgate.api.location import absolute
from lockgate.api.outside import real_runtime
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store
from lockgate.model.errors import LockgateError, OptionError
from lockgate.model.layout import JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl, parse_url
from lockgate.plugins.registry import PluginRegistry, registry_for


def check_type(options: JobOptions) -> JobOptions:
    """What was given as options, which are some.

    Raises:
        OptionError: they are none.
    """
    if not isinstance(options, JobOptions):
        raise OptionError(
            f"options are a lockgate.JobOptions, not {type(options).__name__}",
            where=repr(options)[:200],
            next_step="JobOptions(name=value, …); Job and lockgate.spark.write take name=value, too",
        )
    return options


def registry_of(options: JobOptions) -> PluginRegistry:
    """The registry of the plugins that these options choose.

    Raises:
        OptionError: what is given as options are none.
    """
    check_type(options)
    registry = registry_for(options.plugins_allow, options.plugins_block)
    registry.check_plugins(options)
    return registry


def open_destination(url: str | StoreUrl, options: JobOptions) -> Store:
    """The store at a destination, checked against the protocol and the policy of the options.

    Raises:
        UsageError: no plugin serves it, or the combination is not safe.
    """
    registry = registry_of(options)
    for name in ("summary_report_directory", "diagnostics_manifest_directory"):
        if given := getattr(options, name):
            try:
                registry.owner_of(parse_url(absolute(given)).scheme)
            except LockgateError as error:
                where = f"{name}={given}\n{error.where}".strip()
                raise OptionError(f"{name}: {error.what}", where=where, next_step=error.next_step) from error
    return registry.open_destination(str(parse_url(url) if isinstance(url, str) else url), options)


def job_run(
    store: Store, options: JobOptions, layout: JobLayout, *, marker: str = "", task_attempt_id: str = ""
) -> JobRun:
    """Work at one job of a store's destination."""
    registry = registry_of(options)
    options = registry.settled(store, options)

    async def open_store(url: str) -> Store:
        return registry.open_store(absolute(url), options)

    return JobRun(
        layout=layout,
        options=options,
        store=store,
        hooks=registry,
        runtime=real_runtime(registry.emit),
        open_store=open_store,
        marker=marker,
        task_attempt_id=task_attempt_id,
    )
