"""The reference of the command line, docs/cli.md, made from the commands themselves.

Write it anew with: python -m privacyfunnel.cli.reference docs/cli.md
"""

from __future__ import annotations

import sys
from typing import Any

from ..persistence import write_atomic
from .app import command

_INTRODUCTION = """\
# Command line

This page is generated from the commands: `python -m privacyfunnel.cli.reference docs/cli.md`.

All information is in bits. Utility is I(Z;X) and leakage I(Z;Y), for public X, private Y and released Z.

```sh
pfunnel demo                                                        # the paper's example, with a figure
pfunnel frontier people.csv --public job --private sex --plot f.png  # what is possible
pfunnel solve people.csv --public job --private sex --min-utility 2 --output m.json
pfunnel release people.csv --mechanism m.json --output released.csv --shuffle
pfunnel audit m.json --data people.csv --card card.md

pfunnel fit faces.npz --private y --output model/ --encoder-output encoder/  # for images and wide tables
pfunnel encode new.npz --model encoder/ --output z.npz              # the encoder is all that this needs
pfunnel decode z.npz --model model/ --output faces-again.npz
```

`python -m privacyfunnel` is the same command. `pfunnel --install-completion` teaches the shell its commands
and options.

## Files

Tables are `.csv`, `.tsv` (both also `.gz`) or `.parquet`, by the ending of the name. They are read and
written in batches and may be larger than memory.

- In CSV every value is text and stays it: `007` stays `007`. An empty field is a missing value. The first
  line names the columns; the text is UTF-8. A mechanism that was solved on a Parquet file with numbers fits
  a CSV file with the same numbers, but not the other way round.
- In Parquet every column keeps its type. Metadata of the file are not copied to the output.
- An output appears whole or not at all: after an error, Ctrl-C or a full disk nothing is left of it. A file
  of the same name is replaced; a file that is read cannot be the output. Until it is whole it is a hidden
  file that only its owner can read; what a killed process leaves of one is removed by the next command that
  writes into the folder.
- Spreadsheets execute cells that begin with `=`, `+`, `-`, `@`, a tab or a line break. With
  `--spreadsheet-safe` such texts and names of columns are written with a `'` in front, which spreadsheets do
  not show; numbers stay. Other programs then see the `'`, so it is off by default.
- `fit`, `encode` and `decode` also read `.npz` (arrays `x`, `y`; codes are `z`), the first two IDX images
  too, whose bytes become numbers in [0, 1]. Table columns must hold numbers, but for the private ones.
  `fit` and `.npz` need memory for all records.
- A model is a folder with `manifest.json` and its weights. Loading it executes nothing and checks everything;
  saving into a folder that holds a model replaces that one, whole or not at all.
- Records in messages are counted from 1, without the header; lines are lines of the file.

## What the numbers are

- Utility, leakage and the adversary's success are **exact** for the joint distribution of the records in the
  file: computed from the mechanism's table, not estimated from a release.
- The **interval** is for the leakage on the population that the records were drawn from. It allows for the
  mechanism having been chosen on the same records.
- "Proved" is a **bound** for every release on these records, also those that nobody has tried: leakage cannot
  be lower, or utility higher. Only `exact` proves one.

In JSON these are `utility`, `leakage`, `objective` and `measures` (exact), `leakage_interval` (interval),
`lower_bound` on `objective` and its distance `gap` (bound; `null` where nothing was proved). In that of
`frontier`, `table` has the leakage at ten utilities, `lower_bound` what is proved there, and each of
`support_lines` proves leakage ≥ value + beta · utility.

## What a release protects

A mechanism is made for its public columns, and says how much they tell about the private ones once they are
replaced. `pfunnel release` therefore hands out the released column and nothing else, and says what it leaves
out.

- `--keep COLUMN` hands out another column unchanged, `--keep-all` all but the public and private ones. **They
  are not protected**: a column that tells the private one, alone or together with z, undoes the release.
  `pfunnel solve … --keep COLUMN` and `pfunnel audit … --keep COLUMN` measure what it tells; the audit's
  release card says so too.
- `--keep-public` and `--keep-private` are for tests. A mechanism that was built by hand in Python may not
  name the private columns: then `--keep-all` cannot know them.
- Records come out in their own order, and whoever knows how they were sorted knows what they were sorted by.
  `solve`, `frontier` and `audit` warn where neighbours agree in the private column far more often than
  chance. `--shuffle` of `release` and `encode` writes them in random order, drawn from the operating system's
  entropy. Tables larger than memory are shuffled through unnamed files beside the output (for stdout in the
  system's temporary folder), which vanish with the process.
- A record whose letter the mechanism does not know stops the release before anything is written; the message
  counts all of them. `--unknown draw` gives each a symbol drawn from P(Z), as letters get that no record had
  when the mechanism was made; `--unknown drop` leaves them out.

Random numbers come from the operating system. With `--seed` anybody who knows the seed can undo the noise.
Release once and hand out the result: each further release of the same records tells more.

What `solve` and `frontier` print, and their `--json`, are exact numbers of the records, sizes of the private
classes among them: they are for the owner. To be handed out are the released file, the card, and an audit
without figures. A mechanism file is computed from the records to the last digit: somebody who knows the
private values of all others could test the last one with it, so give it to those who release, not to the
public.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | a stated gate failed, or training diverged |
| 2 | bad input or unwritable output: one line on stderr says what is wrong, where, and what to do |
| 129 | the terminal was closed (SIGHUP) |
| 130 | interrupted with Ctrl-C |
| 143 | terminated |

A pipe whose reader goes away before the end, as in `pfunnel release … --output - | head`, is unwritable
output. Warnings are single lines on stderr that begin with `warning:`, notes with `note:`. A progress bar is
shown on stderr when that is a terminal and the work takes longer than a moment; elsewhere work prints a line
a minute there. With `--json` stdout holds one JSON object and nothing else.
"""


def markdown() -> str:
    """The whole page."""
    root = command()
    return "\n".join([_INTRODUCTION, *(_section(name, part) for name, part in root.commands.items())])


def _section(name: str, part: Any) -> str:
    arguments = [p for p in part.params if p.param_type_name == "argument"]
    named = [p for p in part.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join(["pfunnel", name, *(str(p.metavar or p.name) for p in arguments), "[OPTIONS]"])
    lines = [f"## pfunnel {name}", "", "```", usage, "```", "", str(part.help), ""]
    lines += ["| argument or option | meaning | default |", "|---|---|---|"]
    lines += [_row(p) for p in [*arguments, *named]]
    return "\n".join(lines) + "\n"


def _row(parameter: Any) -> str:
    name = parameter.metavar or parameter.name
    if parameter.param_type_name == "option":
        value = "" if parameter.is_flag else f" {parameter.metavar}"
        name = ", ".join(parameter.opts) + value
    cells = (f"`{name}`", str(parameter.help or ""), _default(parameter))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = parameter.default() if callable(parameter.default) else parameter.default
    if value is None or value is False:
        return ""
    values = value if isinstance(value, (list, tuple)) else [value]
    return ", ".join(f"`{item}`" for item in values)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write_atomic(sys.argv[1], markdown())
    else:
        print(markdown(), end="")
