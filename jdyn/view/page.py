"""Pages of text, tables and pictures in one file of HTML, without scripts and without anything from elsewhere."""

import base64
import html
import io
from collections.abc import Sequence

from matplotlib.figure import Figure

# Of pictures in pages [1/inch].
DPI = 130

# Nothing is run, and nothing is loaded.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
)

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #f4f5f7; color: #1d2430; font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { margin: 0 0 4px; font-size: 28px; overflow-wrap: anywhere; }
h2 { margin: 0 0 12px; font-size: 19px; }
section { margin-top: 20px; padding: 20px 24px; background: #fff; border: 1px solid #e1e4ea; border-radius: 10px; }
p { margin: 0 0 12px; max-width: 80ch; }
.faint { color: #5d6778; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin-top: 20px; }
.card { padding: 14px 18px; background: #fff; border: 1px solid #e1e4ea; border-radius: 10px; }
.card b { display: block; font-size: 22px; font-weight: 600; }
.scroll { overflow-x: auto; }
p + .scroll, .scroll + p, img + p { margin-top: 12px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: left; color: #5d6778; font-weight: 600; border-bottom: 2px solid #e1e4ea; }
th, td { padding: 4px 14px 4px 0; vertical-align: top; }
td { border-bottom: 1px solid #eef0f4; overflow-wrap: anywhere; }
tr.weak td { color: #8a93a3; }
td.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
th.number { text-align: right; }
img { display: block; width: 100%; height: auto; }
details { margin-top: 12px; }
summary { cursor: pointer; color: #0063a8; }
ul { margin: 0; padding-left: 20px; }
@media print { body { background: #fff; } section, .card { break-inside: avoid; } }
"""


class Page:
    """A page that grows from top to bottom. Whatever text it is given is shown as it is."""

    def __init__(self, title: str, subtitle: str):
        self._title = html.escape(title)
        self._parts = [f'<h1>{self._title}</h1><p class="faint">{html.escape(subtitle)}</p>']
        self._open = False

    def cards(self, cards: Sequence[tuple[str, str]]) -> None:
        """Few numbers that say most, each with what it is."""
        self._end()
        found = (
            f'<div class="card"><b>{html.escape(value)}</b><span class="faint">{html.escape(what)}</span></div>'
            for value, what in cards
        )
        self._parts.append(f'<div class="cards">{"".join(found)}</div>')

    def section(self, title: str) -> None:
        """Begin a section."""
        self._end()
        self._parts.append(f"<section><h2>{html.escape(title)}</h2>")
        self._open = True

    def text(self, text: str) -> None:
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def items(self, items: Sequence[str]) -> None:
        self._parts.append(f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in items)}</ul>")

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[str]], *, weak: Sequence[bool] = (), fold: str | None = None
    ) -> None:
        """A table whose columns after the first one are numbers, if they look so.

        Args:
            heads: Of its columns.
            rows: Its cells.
            weak: Which rows matter less; none if left out.
            fold: What to click at to see it; it is always seen if left out.
        """
        numbers = [
            bool(rows) and all(not row[column] or row[column][0] in "-+0123456789n" for row in rows)
            for column in range(len(heads))
        ]
        marks = [' class="number"' if number else "" for number in numbers]
        head = "".join(f"<th{mark}>{html.escape(text)}</th>" for mark, text in zip(marks, heads, strict=True))
        body = []
        for i, row in enumerate(rows):
            cells = "".join(f"<td{mark}>{html.escape(text)}</td>" for mark, text in zip(marks, row, strict=True))
            mark = ' class="weak"' if weak and weak[i] else ""
            body.append(f"<tr{mark}>{cells}</tr>")
        table = f'<div class="scroll"><table><tr>{head}</tr>{"".join(body)}</table></div>'
        self._parts.append(
            f"<details><summary>{html.escape(fold)}</summary>{table}</details>" if fold is not None else table
        )

    def picture(self, figure: Figure, what: str) -> None:
        """A figure, and what it shows, for those who do not see it."""
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DPI)
        data = base64.b64encode(file.getvalue()).decode()
        self._parts.append(f'<img alt="{html.escape(what)}" src="data:image/png;base64,{data}">')

    def whole(self) -> str:
        """The page as text."""
        self._end()
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{self._title}</title>'
            f'<meta name="viewport" content="width=device-width">{POLICY}<style>{STYLE}</style></head>'
            f"<body><main>{''.join(self._parts)}</main></body></html>\n"
        )

    def _end(self):
        if self._open:
            self._parts.append("</section>")
        self._open = False
