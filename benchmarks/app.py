"""The page of `pfunnel app` on 10⁷ records: first screen, first look, slider, memory.

In Debian's Chromium. The table (a Parquet file of 12 columns) is made once, in the folder for temporary
files. With a folder for results, all tables are written into its app.md.
"""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from .report import page, show

N_RECORDS = 10_000_000
FOLDER = Path(tempfile.gettempdir()) / "privacyfunnel-app"
#: Columns of few values, with how strongly each repeats the private one, and how many values it has.
LETTERS = {"ward": (0.3, 12), "diagnosis": (0.2, 300), "doctor": (0.1, 80), "insurer": (0.05, 9)}
#: In the page: milliseconds from a key to the changed text on the screen, and those that the server took.
WATCH = """() => {
  window.moves = [];
  const slider = document.getElementById("slider");
  let pressed = 0;
  slider.addEventListener("keydown", (event) => { pressed = event.timeStamp; });
  new MutationObserver(() => requestAnimationFrame((painted) => window.moves.push(painted - pressed)))
    .observe(document.getElementById("stop"), { childList: true });
}"""
SERVED = """() => performance.getEntriesByType("resource").filter((one) => one.name.endsWith("/stop"))
  .map((one) => one.responseEnd - one.requestStart)"""

#: Whether the count of all records that goes on behind the first look has ended.
COUNTED = """() => !(document.getElementById("work-text")?.textContent ?? "").startsWith("Counting")"""


def main(output: Path | None = None) -> None:
    """Measure, print, and write the page of results."""
    from playwright.sync_api import sync_playwright

    path = table()
    asked = [sys.executable, "-m", "privacyfunnel", "app", "--no-browser", "--json", str(path)]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        seen = browser.new_page()
        seen.set_default_timeout(600_000)
        begun = time.perf_counter()
        with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                told = ""
                while not told.endswith("}\n"):
                    told += process.stdout.readline()
                rows, slider = _way(seen, json.loads(told)["address"], begun, Memory(process.pid))
                process.send_signal(signal.SIGINT)
                process.wait(60)
            finally:
                process.kill()
        browser.close()
    size = f"{N_RECORDS:,} records, 12 columns, {path.stat().st_size / 1e6:.0f} MB of Parquet"
    tables = [
        show(f"app screens: {size}; memory of all processes of the app together", rows),
        show("app slider: 40 presses of an arrow key, milliseconds", slider),
    ]
    if output is not None:
        page(output / "app.md", "What the page takes", "app", tables)


def table() -> Path:
    """A table of stays in hospitals, made once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "stays.parquet"
    if path.exists():
        return path
    rng, n = np.random.default_rng(0), N_RECORDS
    sex = rng.integers(2, size=n)
    found = {"person": pa.array(np.arange(n)), "sex": pa.array(["f", "m"]).take(pa.array(sex))}
    for name, (strength, values) in LETTERS.items():
        number = np.where(rng.random(n) < strength, sex, rng.integers(values, size=n))
        found[name] = pa.array([f"{name} {i}" for i in range(values)]).take(pa.array(number))
    found["day"] = pa.array(rng.integers(18_000, 20_000, n).astype("datetime64[D]"))
    found["age"] = pa.array(rng.integers(0, 100, n), mask=rng.random(n) < 0.02)
    found["weight"] = pa.array(rng.normal(70 + 10 * sex, 12).round(1))
    found["cost"] = pa.array(rng.lognormal(8, 1, n).round(2))
    notes = pa.array([f"note {i}" for i in range(50_000)])
    found["note"] = notes.take(pa.array(rng.integers(len(notes), size=n)))
    found["returned"] = pa.array(rng.random(n) < 0.1)
    pq.write_table(pa.table(found), path.with_suffix(".new"))
    return path.with_suffix(".new").rename(path)


class Memory:
    """The most that a process and all below it take together, since it was asked last."""

    def __init__(self, pid: int) -> None:
        import psutil

        self._root, self._most = psutil.Process(pid), 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        import psutil

        while True:
            total = 0
            try:
                for one in (self._root, *self._root.children(recursive=True)):
                    try:
                        total += one.memory_full_info().pss
                    except psutil.NoSuchProcess:
                        continue  # it has ended
            except psutil.NoSuchProcess:
                return
            self._most = max(self._most, total)
            time.sleep(0.3)  # looking takes time itself

    def most(self) -> float:
        """In megabytes; it begins anew."""
        most, self._most = self._most, 0
        return most / 1e6


def _way(
    seen: Any, address: str, begun: float, memory: Memory
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Look and Choose by somebody who knows where things are; seconds, megabytes, and those of the slider."""
    rows: list[dict[str, Any]] = []

    def done(what: str) -> None:
        nonlocal begun
        seconds = time.perf_counter() - begun
        rows.append({"until": what, "seconds": seconds, "most memory (MB)": memory.most()})
        begun = time.perf_counter()

    done("the address is printed, from the start of the command")
    seen.goto(address)
    seen.get_by_role("radio", name="private: sex").wait_for()
    done("the first screen is seen, from the address")
    seen.get_by_role("radio", name="private: sex").check()
    for name in ("person", "note", "day", "age", "weight", "cost", "returned", "doctor", "diagnosis"):
        seen.get_by_role("radio", name=f"drop: {name}").check()
    begun = time.perf_counter()
    seen.get_by_role("button", name="Look", exact=True).click()
    seen.get_by_text("Somebody who sees").wait_for()
    done("columns that tell are named, by a first look")
    seen.get_by_role("button", name="Next: choose").click()
    seen.locator('input[name="way"][value="columns"]').check()
    begun = time.perf_counter()
    seen.get_by_role("button", name="Compute the frontier").click()
    seen.wait_for_selector("#slider")
    done("there is a slider, for ward × insurer, while all records are counted")
    seen.evaluate(WATCH)
    slider = seen.locator("#slider")
    slider.press("Home")
    seen.wait_for_timeout(1000)
    seen.evaluate("() => { window.moves.length = 0; performance.clearResourceTimings(); }")
    for _ in range(40):
        before = seen.evaluate("window.moves.length")
        slider.press("ArrowRight")
        seen.wait_for_function("n => window.moves.length > n", arg=before)
    told = {
        "from the key to the changed text": seen.evaluate("window.moves"),
        "of that, the server": seen.evaluate(SERVED),
    }
    slider.press("Home")
    memory.most()
    begun = time.perf_counter()
    seen.locator('[data-get$="/look"]').first.click()
    seen.get_by_text("Somebody who sees").wait_for()
    seen.wait_for_function(COUNTED)
    done("all records are counted, from the last press on")
    return rows, [
        {"what": what, "median": statistics.median(times), "most": max(times), "moves": len(times)}
        for what, times in told.items()
    ]
