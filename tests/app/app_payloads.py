"""Names and values of columns that some page, terminal, template, spreadsheet or database would obey."""

from __future__ import annotations

PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    '" onfocus="alert(1)" autofocus="',
    "' onmouseover='alert(1)",
    "</title><base href=//evil.example>",
    "</td></tr></table><iframe src=//evil.example>",
    "<!--",
    "]]><x>",
    "<a href=javascript:alert(1)>x</a>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{{ ''.__class__ }}",
    "${7*7}",
    "%s%n%(x)s",
    "{0.__class__}",
    "&lt;b&gt;&#x41;",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "'; DROP TABLE people; --",
    '"; DROP TABLE people; --',
    "../../etc/passwd",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x1b[0m",
    "a\tb\nc",
    "--key=/etc/passwd",
)
assert len(PAYLOADS) == len(set(PAYLOADS)) == 29
