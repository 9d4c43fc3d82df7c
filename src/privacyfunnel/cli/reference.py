"""The reference of the command line: what docs/cli.md says about each command, made from the commands.

Write it anew with: python -m privacyfunnel.cli.reference docs/cli.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..persistence import write_atomic
from .app import command


def commands() -> dict[str, Any]:
    """Every command by its words, such as "key new"."""
    return {
        f"{name} {inner}".rstrip(): part
        for name, group in command().commands.items()
        for inner, part in getattr(group, "commands", {"": group}).items()
    }


def markdown(page: str) -> str:
    """A page whose sections about commands are those of today; what stands before them stays."""
    introduction = page.partition("\n## pfunnel ")[0]
    return "\n".join([introduction, *(_section(name, part) for name, part in commands().items())])


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
    write_atomic(sys.argv[1], markdown(Path(sys.argv[1]).read_text(encoding="utf-8")))
