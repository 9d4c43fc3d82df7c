"""pfunnel release --rule: new records through a rule of 'pfunnel protect', batch by batch."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import DataFileError, InvalidInputError
from ..measured import rounded_up
from .checks import (
    check_delimiter,
    check_outputs,
    check_spreadsheet_safe,
    check_table_name,
    is_csv,
    written_delimiter,
)
from .running import note, warn, warn_of_seed

if TYPE_CHECKING:
    from ..certified import CertifiedRule

#: What stands for a symbol, by the names that the option has.
RECORDS = {"draw": "columns", "typical": "typical", "symbol": "symbol"}


def release_by_rule(
    data: str,
    rule: str,
    output: str,
    *,
    values: str,
    keep: Sequence[str],
    shuffle: bool,
    spreadsheet_safe: bool,
    seed: int | None,
    key: str | None,
    person: str | None,
    gaps: Sequence[str],
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Rows of the same columns for the records of a file, made from their symbols alone."""
    import numpy as np

    from ..certified.streaming import RuleRelease
    from ..files import STDOUT, open_table, open_writer
    from ..keys import read_key
    from ..streams import check_sink, written
    from .output import plural, print_facts, print_json

    begun = time.perf_counter()
    to_stdout = output == STDOUT
    check_outputs([None if to_stdout else output], [data, *([key] if key else [])])
    if not to_stdout:
        check_table_name(output)
    check_spreadsheet_safe(spreadsheet_safe, output)
    check_delimiter(delimiter, [data, output])
    loaded = _load(rule)
    table = open_table(data, delimiter=delimiter if is_csv(data) else None, gaps=gaps)
    if not to_stdout:
        check_sink(table, output)
    if seed is not None:
        warn_of_seed()
    if keep:
        warn(f"the guarantee is not about what these columns tell: {', '.join(keep)}.")
    generator = None if seed is None else np.random.default_rng(seed)
    order = None if generator is None else generator.spawn(1)[0]
    secret = None if key is None else read_key(key)
    releasing = RuleRelease(table, loaded, RECORDS[values], keep, generator, secret, person)
    with open_writer(
        output,
        delimiter=written_delimiter(delimiter, data, output),
        spreadsheet_safe=spreadsheet_safe,
        shuffle=shuffle,
        rng=order,
        forms=releasing.forms,
    ) as writer:
        n_records = written(writer, releasing.tables())
    told = {
        "command": "release",
        "data": data,
        "rule": rule,
        "output": output,
        "n_records": n_records,
        "values": values,
        "certificate": loaded.certificate.value,
        "confidence": loaded.certificate.confidence,
        "kept": list(keep),
        "shuffled": shuffle,
        "keyed": key is not None,
        "seconds": time.perf_counter() - begun,
    }
    if as_json:
        print_json(told)
    elif to_stdout:
        note(f"{plural(n_records, 'record')} released.")
    else:
        facts = [
            ("Guaranteed", _sentence(loaded), ""),
            ("Drawn", "with the key" if key else "anew", f"one row for each {person}" if key else ""),
            ("Order", "random" if shuffle else "that of the records", ""),
            ("Saved", output, f"{plural(n_records, 'record')} in {told['seconds']:.1f} s"),
        ]
        print_facts(f"{data}: {plural(n_records, 'record')} released by the rule {rule}.", facts)


def _sentence(rule: CertifiedRule) -> str:
    """The guarantee of a rule for people: who, what, how sure, and how often it may be used."""
    one, private = rule.certificate, " × ".join(rule.private_names)
    share = f"{rounded_up(100 * one.value):.4g} %"
    if one.note.startswith("of every limit"):
        said = f"nobody learns more about {private} than the limit that each of them was given"
    elif one.unit == "bit":
        said = f"nobody learns more than {rounded_up(one.value):.4g} bit about {private}"
    elif "guessed right" in one.note:
        said = f"nobody guesses {private} right more often than {share} of the time"
    elif "two groups" in one.note:
        said = f"no decision made from it treats two groups of {private} more than {share} apart"
    else:
        said = f"{one} about {private}"
    return (
        f"From a new person's row {said}, with {100 * (one.confidence or 0):g} % confidence. It is about one "
        "release of each person"
    )


def _load(path: str) -> CertifiedRule:
    from ..certified import CertifiedFunnel, CertifiedRule
    from ..persistence import load

    if not os.path.isdir(path):
        raise DataFileError(f"{path}: there is no such folder; name what 'pfunnel protect --rule' wrote.")
    found = load(path)
    found = found.rule_ if isinstance(found, CertifiedFunnel) else found
    if not isinstance(found, CertifiedRule) or found.tables is None:
        raise InvalidInputError(f"{path}: this is no rule for tables; name what 'pfunnel protect' wrote.")
    return found
