"""pfunnel audit: attack a release, say what it tells, and judge it by stated limits."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from ..fingerprints import owner_key
from . import options
from .running import note

if TYPE_CHECKING:
    from ..audit import AuditReport, Verdict
    from .audit_inputs import Sources


def _share(value: float | None) -> float | None:
    if value is not None and not 0 <= value <= 1:
        raise typer.BadParameter(f"it is a share between 0 and 1, such as 0.6, and is {value:g}")
    return value


def audit(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help="What is released: codes (.npz with array z, .csv, .tsv or .parquet), a mechanism that "
            "'pfunnel solve' wrote, a model folder that 'pfunnel fit' wrote, or a saved audit (.json).",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            metavar="FILE",
            help="The records X: needed for a mechanism or a model; with codes, for the comparison with raw "
            "records and for PSNR. Files as for 'pfunnel fit'.",
        ),
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="y in .npz and IDX files; what a mechanism file names",
            help="The private column (Y). Repeat for several: each is audited by itself.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default="RELEASE or DATA",
            help="Where the private columns and tasks are, one record a row in the same order.",
        ),
    ] = None,
    reconstruction: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Reconstructions of the records from codes (in .npz the array x_hat)."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column that the release should stay good for. Repeat for several."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Not part of the release or of X. Repeat for several."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that is handed out beside the release: what it tells, alone and with Z, is "
            "measured too. Repeat for several.",
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="as in the mechanism file",
            help="The public columns of a mechanism, where DATA has other names for them.",
        ),
    ] = None,
    max_success: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", callback=_share, help="Fail where an adversary may guess more often than this."
        ),
    ] = None,
    max_leakage: Annotated[
        float | None,
        typer.Option(metavar="BITS", callback=options.numbers, help="Fail where I(Z;Y) may be larger."),
    ] = None,
    min_psnr: Annotated[
        float | None,
        typer.Option(metavar="DB", callback=options.numbers, help="Fail where PSNR may be lower."),
    ] = None,
    max_lift: Annotated[
        float | None,
        typer.Option(
            metavar="BITS",
            callback=options.numbers,
            help="Fail where the release may make a private class likelier for somebody by more than this.",
        ),
    ] = None,
    min_group: Annotated[
        int | None,
        typer.Option(
            metavar="RECORDS", min=1, help="Fail where a group that the release sets apart may be smaller."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Lines and trees only, which learn from 5,000 records at most."),
    ] = False,
    thorough: Annotated[
        bool,
        typer.Option("--thorough", help="Every adversary, learning from all records instead of 20,000."),
    ] = False,
    many_draws: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="Also attack the average of so many releases of each record."
        ),
    ] = 0,
    n_repeats: Annotated[
        int,
        typer.Option("--n-repeats", metavar="NUMBER", min=1, help="Draws of codes and of embeddings."),
    ] = 3,
    confidence: Annotated[
        float,
        typer.Option(metavar="SHARE", callback=_share, help="How often the intervals shall hold."),
    ] = 0.95,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Decides every draw: same seed, same report.")
    ] = 0,
    n_jobs: Annotated[
        int,
        typer.Option(
            "--n-jobs",
            metavar="NUMBER",
            help="Processes; -1 for all cores. Does not change the result.",
        ),
    ] = -1,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", show_default="the name of the file", help="What the report calls the release."
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the report goes: .html for people, .json for programs. Repeat for both.",
        ),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(metavar="FILE.md", help="Write the release card too, and its JSON beside it."),
    ] = None,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures",
            help="Draw where records lie: densities of embeddings, with rough class shares of ten records or "
            "more. The report is then as private as the data, and says so.",
        ),
    ] = False,
    show_records: Annotated[
        bool,
        typer.Option(
            "--show-records",
            help="Show a few records (images) and their reconstructions. The report is then as private as "
            "the data, and says so.",
        ),
    ] = False,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The owner's key for fingerprints of the private data, made if there is none; keep it with "
            "the data. Without it only what is released is fingerprinted.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Attack a release with every adversary, and say what it tells about the private columns.

    With limits the command is a gate: exit code 0 says that all are kept, 1 that one is not or that it could
    not be measured. The pessimistic end of each interval decides. A success that was kept within its limit
    was so for the adversaries tried; another may do better. Classes of fewer than ten records count as told.

    Audit records that the mechanism was not made from: on its own, leakage looks smaller than it is.
    """
    from .audit_inputs import Sources

    begun = time.perf_counter()
    sources = Sources(
        release,
        data,
        labels,
        reconstruction,
        private=tuple(private or ()),
        task=tuple(task or ()),
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
        public=tuple(public or ()),
        delimiter=delimiter,
    )
    outputs = list(output or [])
    _check_outputs(outputs, card, [*sources.files, *([] if key is None else [key])])
    report = _saved_report(sources, name or key or figures or show_records)
    if report is None:
        settings = {
            "many_draws": many_draws,
            "n_repeats": n_repeats,
            "effort": _effort(quick, thorough),
            "confidence": confidence,
            "random_state": seed,
            "n_jobs": n_jobs,
            "name": name or os.path.basename(os.path.normpath(release)),
            "fingerprint_key": None if key is None else owner_key(key),
            "figures": figures,
            "show_records": show_records,
        }
        report = _measure(sources, settings)
        if labels is not None:
            note(
                f"{release} and {labels} must hold the same people in the same order; of a shuffled file "
                "nothing can be found, whatever it tells."
            )
        if figures and "density" not in report.figures_data:
            note("--figures: there is nothing to draw; symbols have no embedding.")
    verdicts = report.gate(
        max_success=max_success,
        max_leakage=max_leakage,
        min_psnr=min_psnr,
        max_lift=max_lift,
        min_group=min_group,
    )
    written = _write(report, verdicts, outputs, card)
    seconds = time.perf_counter() - begun
    if as_json:
        _print_json(report, verdicts, release, written, seconds)
    else:
        from .audit_summary import print_report

        print_report(report, verdicts, release, written, seconds)
    if not all(one.passed for one in verdicts):
        raise typer.Exit(1)


def _effort(quick: bool, thorough: bool) -> str:
    if quick and thorough:
        raise InvalidInputError("--quick and --thorough say opposite things; leave one of them out.")
    return "quick" if quick else "thorough" if thorough else "default"


def _check_outputs(outputs: Sequence[str], card: str | None, inputs: Sequence[str]) -> None:
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
    options.check_outputs([*outputs, *cards], inputs)


def _saved_report(sources: Sources, other: object) -> AuditReport | None:
    """The audit that RELEASE holds, if it does: then there is nothing to measure."""
    if not sources.release.lower().endswith(".json"):
        return None
    from ..audit import AuditReport
    from ..persistence import load

    report = load(sources.release)
    if not isinstance(report, AuditReport):
        return None
    if len(sources.files) > 1 or sources.private or sources.task or sources.drop or sources.keep or other:
        raise InvalidInputError(
            f"{sources.release}: this is an audit, whose records are not read again; leave out the options "
            "about data and figures, or name the release itself."
        )
    return report


def _measure(sources: Sources, settings: dict[str, Any]) -> AuditReport:
    from ..audit import audit as attack
    from .records import enough_memory

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
    from .output import print_json

    print_json(
        {
            "command": "audit",
            "release": release,
            "passed": all(one.passed for one in verdicts),
            "verdicts": [one.to_dict() for one in verdicts],
            "findings": [one.to_dict() for one in report.published().findings],
            "meta": dict(report.meta),
            "output": list(written),
            "seconds": seconds,
        }
    )
