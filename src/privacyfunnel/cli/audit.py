"""pfunnel audit: attack a release, say what it tells, and judge it by stated limits."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from ..keys import owner_key
from . import options
from .budget import share
from .checks import check_outputs
from .options import Option, columns, file, flag
from .output import NumberTable, print_facts, print_json, show
from .running import note

if TYPE_CHECKING:
    from ..auditing import AuditReport, Finding, Verdict
    from .audit_inputs import Sources


def _share(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise typer.BadParameter(f"it is a share between 0 and 1, such as 0.6, and is {value:g}")
    return value


# What is released, and of whom: the fields of `Sources`.
SOURCES = {
    "data": file(
        "The records X: needed for a mechanism or a model; with codes, for the comparison with raw records "
        "and for PSNR. Files as for 'pfunnel fit'.",
        "--data",
        "-d",
    ),
    "private": columns(
        "The private column (Y). Repeat for several: each is audited by itself.",
        "y in .npz and IDX files; what a mechanism file names",
    ),
    "numeric": columns(
        "A private column of whole numbers that is a number and no class. Repeat for several.",
        "what a model was fitted with",
    ),
    "labels": file(
        "Where the private columns and tasks are, one record a row in the same order.",
        default="RELEASE or DATA",
    ),
    "reconstruction": file("Reconstructions of the records from codes (in .npz the array x_hat)."),
    "task": columns("A column that the release should stay good for. Repeat for several."),
    "drop": columns("Not part of the release or of X. Repeat for several."),
    "keep": columns(
        "A column that is handed out beside the release: what it tells, alone and with Z, is measured too. "
        "Repeat for several."
    ),
    "public": columns(
        "The public columns of a mechanism, where DATA has other names for them.", "as in the mechanism file"
    ),
}
# What `AuditReport.gate` takes.
LIMITS = {
    "max_success": Option(
        "Fail where an adversary may guess more often than this, such as 70%.",
        kind=str,
        metavar="SHARE",
        check=share,
    ),
    "max_leakage": Option("Fail where I(Z;Y) may be larger.", metavar="BITS"),
    "min_psnr": Option("Fail where PSNR may be lower.", metavar="DB"),
    "max_lift": Option(
        "Fail where the release may make a private class likelier for somebody by more than this.",
        metavar="BITS",
    ),
    "min_group": Option(
        "Fail where a group that the release sets apart may be smaller.", kind=int, metavar="RECORDS"
    ),
}
OTHERS = {
    "quick": flag("Lines and trees only, which learn from 5,000 records at most."),
    "thorough": flag("Every adversary, learning from all records instead of 20,000."),
    "many_draws": Option(
        "Also attack the average of so many releases of each record.", kind=int, value=0, least=0
    ),
    "n_repeats": Option("Draws of codes and of embeddings.", kind=int, value=3),
    "confidence": Option("How often the intervals shall hold.", metavar="SHARE", value=0.95, check=_share),
    "seed": Option("Decides every draw: same seed, same report.", kind=int, value=0, least=0),
    "n_jobs": Option(
        "Processes; -1 for all cores. Does not change the result.", kind=int, value=-1, least=None
    ),
    "name": Option("What the report calls the release.", "the name of the file", str, metavar="TEXT"),
    "output": Option(
        "Where the report goes: .html for people, .json for programs. Repeat for both.",
        kind=str,
        several=True,
        metavar="FILE",
        flags=("--output", "-o"),
    ),
    "card": Option("Write the release card too, and its JSON beside it.", kind=str, metavar="FILE.md"),
    "figures": flag(
        "Draw where records lie: densities of embeddings, with rough class shares of ten records or more. "
        "The report is then as private as the data, and says so."
    ),
    "show_records": flag(
        "Show a few records (images) and their reconstructions. The report is then as private as the data, "
        "and says so."
    ),
    "fresh_records": flag(
        "Say that the audited records had no part in making the mechanism. A release of symbols then gets "
        "upper bounds that hold for every adversary."
    ),
    "same_order": flag(
        "Say that RELEASE and LABELS hold the same people in the same order: without it an audit of two "
        "files that finds nothing is refused, as that of a shuffled file would be."
    ),
    "key": file(
        "The owner's key for fingerprints of the private data, made if there is none; keep it with the data. "
        "Without it only what is released is fingerprinted."
    ),
}
# What `privacyfunnel.audit` takes as it is.
_HANDED_ON = ("many_draws", "n_repeats", "confidence", "n_jobs", "figures", "show_records", "fresh_records")


@options.with_options({**SOURCES, **LIMITS, **OTHERS}, before="delimiter")
def audit(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help="What is released: codes (.npz with array z, .csv, .tsv or .parquet), a mechanism that "
            "'pfunnel solve' wrote, a model folder that 'pfunnel fit' wrote, or a saved audit (.json).",
        ),
    ],
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Attack a release with every adversary, and say what it tells about the private columns.

    With limits the command is a gate: exit code 0 says that all are kept, 1 that one is not or that it could
    not be measured. The pessimistic end of each interval decides. A success that was kept within its limit
    was so for the adversaries tried; another may do better. Classes of fewer than ten records count as told.

    Audit records that the mechanism was not made from: on its own, leakage looks smaller than it is.
    """
    from .audit_inputs import Sources

    begun = time.perf_counter()
    sources = Sources(release, delimiter, **options.listed(SOURCES, given))
    outputs, card, key = list(given["output"] or ()), given["card"], given["key"]
    _check_written(outputs, card, [*sources.files, *([] if key is None else [key])])
    others = [given[name] for name in ("name", "key", "figures", "show_records", "fresh_records")]
    report = _saved_report(sources, any(others))
    if report is None:
        settings = {name: given[name] for name in _HANDED_ON} | {
            "effort": _effort(given["quick"], given["thorough"]),
            "random_state": given["seed"],
            "name": given["name"] or os.path.basename(os.path.normpath(release)),
            "fingerprint_key": None if key is None else owner_key(key),
        }
        report = _measure(sources, settings)
        if sources.labels is not None and not given["same_order"]:
            _refuse_unaligned(report, sources)
            note(
                f"{release} and {sources.labels} must hold the same people in the same order; of a shuffled "
                "file nothing can be found, whatever it tells."
            )
        if given["figures"] and "density" not in report.figures_data:
            note("--figures: there is nothing to draw; symbols have no embedding.")
    verdicts = report.gate(**{name: given[name] for name in LIMITS})
    written = _write(report, verdicts, outputs, card)
    seconds = time.perf_counter() - begun
    if as_json:
        _print_json(report, verdicts, release, written, seconds)
    else:
        _print_report(report, verdicts, release, written, seconds)
    if not all(one.passed for one in verdicts):
        raise typer.Exit(1)


def _refuse_unaligned(report: AuditReport, sources: Sources) -> None:
    """Of a shuffled file nothing is found, whatever it tells: that is no result, and no gate may pass by it.

    Whatever was found shows that rows go with labels, at least mostly.
    """
    from ..report import wording
    from ..report.html import adversary_rows

    for name in wording.attributes(report):
        chance = wording.told(report, name).chance
        for row in adversary_rows(report, name):
            found = row["found"].get("success")
            least = None if found is None or found.interval is None else found.interval[0]
            # Sorted labels show in the order of the rows, whatever stands in them.
            if row["on"] != "order" and least is not None and chance is not None and least > chance.value:
                return
    raise InvalidInputError(
        f"{sources.release}: nothing was found about {', '.join(wording.attributes(report))} with the labels "
        f"of {sources.labels}, and if the rows are in another order nothing can be, whatever the file tells; "
        "what 'pfunnel protect' writes is in random order. Audit a file before it is shuffled, or pass "
        "same_order if both hold the same people in the same order.",
        names=("same_order",),
    )


def _effort(quick: bool, thorough: bool) -> str:
    if quick and thorough:
        raise InvalidInputError("--quick and --thorough say opposite things; leave one of them out.")
    return "quick" if quick else "thorough" if thorough else "default"


def _check_written(outputs: Sequence[str], card: str | None, inputs: Sequence[str]) -> None:
    """Refuse, before any work, what could not be written after it."""
    cards: tuple[str, ...] = ()
    if card is not None:
        from ..report.card import card_names

        cards = card_names(card)
    for one in outputs:
        if not one.lower().endswith((".html", ".htm", ".json")):
            raise InvalidInputError(f"{one}: a report is saved as .html or .json; change the ending.")
        if not one.lower().endswith(".json"):
            from ..report.html import check_installed

            check_installed()
    check_outputs([*outputs, *cards], inputs)


def _saved_report(sources: Sources, other: bool) -> AuditReport | None:
    """The audit that RELEASE holds, if it does: then there is nothing to measure."""
    if not sources.release.lower().endswith(".json"):
        return None
    from ..auditing import AuditReport
    from ..persistence import load

    report = load(sources.release)
    if not isinstance(report, AuditReport):
        return None
    named = (sources.private, sources.numeric, sources.task, sources.drop, sources.keep)
    if len(sources.files) > 1 or any(named) or other:
        raise InvalidInputError(
            f"{sources.release}: this is an audit, whose records are not read again; leave out the options "
            "about data and figures, or name the release itself."
        )
    return report


def _measure(sources: Sources, settings: dict[str, Any]) -> AuditReport:
    from ..auditing import audit as attack
    from .checks import enough_memory

    with enough_memory(sources.data or sources.release, "audit a sample of them"):
        report = attack(**sources.read(), **settings)
    if not (there := sources.not_attacked()):
        return report
    said = f"What else the released file holds: {', '.join(there)}. Take it out of what is handed out."
    return replace(report, meta={**report.meta, "not_audited": [said, *report.meta["not_audited"]]})


def _write(
    report: AuditReport, verdicts: Sequence[Verdict], outputs: Sequence[str], card: str | None
) -> list[str]:
    for path in outputs:
        if path.lower().endswith(".json"):
            report.save(path)
        else:
            from ..report.html import save_html

            save_html(report, path, verdicts)
    if card is None:
        return list(outputs)
    from ..report.card import save_card

    return [*outputs, *save_card(report, card, verdicts)]


def _print_json(
    report: AuditReport, verdicts: Sequence[Verdict], release: str, written: Sequence[str], seconds: float
) -> None:
    print_json(
        {
            "command": "audit",
            "release": release,
            "passed": all(one.passed for one in verdicts),
            "verdicts": [one.to_dict() for one in verdicts],
            "summary": report.published().summary(),
            "findings": [one.to_dict() for one in report.published().findings],
            "meta": dict(report.meta),
            "output": list(written),
            "seconds": seconds,
        }
    )


def _print_report(
    report: AuditReport, verdicts: Sequence[Verdict], release: str, written: Sequence[str], seconds: float
) -> None:
    """Facts, one table an attribute, the meaning of the signs, and the verdicts last."""
    from ..report import wording

    report = report.published()
    names = ", ".join(wording.attributes(report))
    show(*wording.first_lines(report))
    print_facts(f"{release}: {wording.basis(report)}; private: {names}.", _facts(report))
    for name in wording.attributes(report):
        _print_adversaries(report, name)
    if sentences := wording.kept_sentences(report):
        show("", *sentences)
    show(
        ", ".join(f"{sign} {kind}" for kind, sign in wording.SIGNS.items())
        + ". Intervals hold each by itself."
    )
    if written:
        show(f"Saved {', '.join(written)} in {seconds:.1f} s.")
    if verdicts:
        show("", *(one.sentence for one in verdicts))


def _facts(report: AuditReport) -> list[tuple[str, str, str]]:
    from ..report import wording
    from ..report.wording import interval, signed, who

    facts: list[tuple[str, str, str]] = []
    for name in wording.attributes(report):
        told = wording.told(report, name)
        if told.best is not None:
            beside = [
                f"{word} {signed(one)}"
                for word, one in (("nobody", told.most), ("by chance", told.chance), ("from raw X", told.raw))
                if one is not None
            ]
            facts.append((f"{name} guessed", signed(told.best), "; ".join([who(told.best), *beside])))
        if told.leaked.findings:
            remark = wording.of_upper(told.leaked.upper)
            facts.append(("I(Z;Y)", ", ".join(map(signed, told.leaked.findings)), remark))
        if told.lift is not None:
            facts.append(("Worst off", f"{signed(told.lift)} of lift", wording.worst_off(report, name) or ""))
        facts += [
            ("Not measured", signed(one), one.notes)
            for one in told.unmeasured
            if one.quantity == "unmeasured leakage"
        ]
    kept = wording.bracket(report, "utility").findings
    if kept:
        facts.append(("I(Z;X)", ", ".join(map(signed, kept)), ""))
    for quantity in ("psnr", "ssim"):
        one = wording.first(report, quantity)
        if one is not None:
            facts.append((quantity.upper(), signed(one), interval(one)))
    for one in report.findings:
        if one.quantity.startswith("task"):
            facts.append((f"{one.attribute} from {one.on}", signed(one), f"{one.quantity}, {interval(one)}"))
    return facts


def _print_adversaries(report: AuditReport, name: str) -> None:
    """Success and bits of each adversary, the strongest first."""
    from rich.text import Text

    from ..report import wording
    from ..report.html import adversary_rows

    rows = adversary_rows(report, name)
    if not rows:
        return
    numeric = any("explained variance" in row["found"] for row in rows)
    columns = ["adversary", "sees", "success and interval", "from X", "I(Z;Y)"]
    table = NumberTable([*columns, "R²"] if numeric else columns, n_text=2)
    for row in rows:
        found: dict[str, Any] = row["found"]
        raw = row["raw"].get("success")
        success, bits = found.get("success"), found.get("leakage")
        cells = [
            row["source"],
            row["on"],
            "–" if success is None else f"{wording.signed(success)} ({_bare(success)})",
            "–" if raw is None else wording.signed(raw),
            "–" if bits is None else wording.signed(bits),
        ]
        if numeric:
            explained = found.get("explained variance")
            cells.append("–" if explained is None else wording.signed(explained))
        table.add_row(*map(Text, cells))
    show("", f"Who guesses {name}:", table)


def _bare(finding: Finding) -> str:
    """The interval without its unit, which stands before it."""
    from ..report import wording

    return wording.interval(finding).removesuffix(" %").replace(" to ", "–")
