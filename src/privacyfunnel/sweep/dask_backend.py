"""joblib's Dask backend, with the news that a worker was lost for good passed on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from joblib._dask import DaskDistributedBackend


class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]
    """As joblib's own, which waits for ever for a task that Dask has given up or forgotten.

    Dask tries a task again when its worker dies, and gives it up after a few deaths (KilledWorker); joblib's
    backend then tells the future, but not the callback that it waits for.
    """

    def effective_n_jobs(self, n_jobs: int) -> int:
        """At least 2: for 1, joblib would compute in this process and not on the cluster."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    def submit(self, func: Any, callback: Callable[[Any], None] | None = None) -> Any:
        future = super().submit(func, callback)

        def tell(done: Future[Any]) -> None:
            error = CancelledError() if done.cancelled() else done.exception()
            if error is not None and callback is not None:
                callback(error)

        future.add_done_callback(tell)
        return future

    def retrieve_result_callback(self, out: Any) -> Any:
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)
