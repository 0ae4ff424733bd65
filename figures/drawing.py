"""A page to draw on: SVG, 700 pixels wide, for light and dark screens.

What the programs here draw has colours by name ("loaded", "masked", ...), and
STYLE says what they are: on paper and on a light screen, and on a dark one. A
figure has a title and a description, for those who hear it read.
"""
from xml.sax.saxutils import escape

WIDTH = 700

# Blue and orange are told apart by those who do not see red or green, and are
# of different brightness, so that a grey print shows them, too.
STYLE = """
  text { font: 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
         fill: #1b1f24 }
  .small { font-size: 11px }
  .tiny { font-size: 10px }
  .head { font-size: 14px; font-weight: 600 }
  .name { font-size: 13px; font-weight: 600 }
  .code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono",
          monospace; font-size: 11px }
  .muted { fill: #4c555e }
  .mid { text-anchor: middle }
  .end { text-anchor: end }
  .bold { font-weight: 700 }
  .page { fill: #fff }
  .panel { fill: #f1f4f8 }
  .plain { fill: #fff; stroke: #9aa4ae }
  .grid { stroke: #d5dbe1 }
  .line { fill: none; stroke: #1b1f24 }
  .dashed { fill: none; stroke: #1b1f24; stroke-dasharray: 5 3 }
  .loaded { fill: #a9cbf0; stroke: #0b5cad }
  .first { fill: #bcd8f6; stroke: #0b5cad }
  .wrapped { fill: #f8c9a0; stroke: #a04000 }
  .masked { fill: #e3e6e9; stroke: #7d868f }
  .ghost { fill: none; stroke: #a04000; stroke-dasharray: 3 2 }
  .tile { fill: none; stroke: #1b1f24; stroke-width: 2 }
  .way { fill: none; stroke: #a04000; stroke-width: 1.5 }
  .tip { fill: #a04000 }
  .band { fill: #ffe9b8 }
  .ieee { fill: #0b5cad; stroke: #0b5cad }
  .tf32 { fill: #e8772e; stroke: #a04000 }
  .open { fill: #fff; stroke: #1b1f24; stroke-width: 1.5 }
  .full { fill: #0b5cad; stroke: #0b5cad }
  .join { stroke: #9aa4ae; stroke-width: 2 }
  .whisker { fill: none; stroke: #1b1f24; stroke-width: 1.5 }
  /* On screens only: a dark page is printed on white paper all the same. */
  @media screen and (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .muted { fill: #b3bcc5 }
    .page { fill: #0d1117 }
    .panel { fill: #171d26 }
    .plain { fill: #0d1117; stroke: #6b7580 }
    .grid { stroke: #303842 }
    .line, .dashed, .tile { stroke: #e6edf3 }
    .loaded { fill: #22507f; stroke: #6cb0ff }
    .first { fill: #1d4570; stroke: #6cb0ff }
    .wrapped { fill: #74401a; stroke: #ff9a57 }
    .masked { fill: #2b3138; stroke: #8b949d }
    .ghost, .way { stroke: #ff9a57 }
    .tip { fill: #ff9a57 }
    .band { fill: #4a3b12 }
    .ieee, .full { fill: #6cb0ff; stroke: #6cb0ff }
    .tf32 { fill: #ff9a57; stroke: #ffc79e }
    .open { fill: #0d1117; stroke: #e6edf3 }
    .join { stroke: #6b7580 }
    .whisker { stroke: #e6edf3 }
  }
"""


def number(value):
    """A coordinate: two digits behind the point, and none that is not needed.
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Drawing:
    """What has been drawn so far, as lines of SVG."""

    def __init__(self, height, title, description):
        self.height = height
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{height}"',
            f'     viewBox="0 0 {WIDTH} {height}" role="img" '
            'aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(description)}</desc>',
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" markerWidth="7" markerHeight="6" refX="6" '
            'refY="3" orient="auto"',
            '  markerUnits="userSpaceOnUse"><path class="tip" '
            'd="M0 0 7 3 0 6z"/></marker></defs>']
        self.rect("page", 0, 0, WIDTH, height)

    def element(self, name, classes, **attributes):
        """An element without text; "_" in a name stands for "-"."""
        told = ""
        for key, value in attributes.items():
            if isinstance(value, (int, float)):
                value = number(value)
            told += f' {key.replace("_", "-")}="{escape(str(value))}"'
        self.lines.append(f'<{name} class="{classes}"{told}/>')

    def rect(self, classes, x, y, width, height, **attributes):
        """A rectangle with its upper left corner at (x, y)."""
        self.element("rect", classes, x=x, y=y, width=width, height=height,
                     **attributes)

    def circle(self, classes, x, y, radius, **attributes):
        """A circle around (x, y)."""
        self.element("circle", classes, cx=x, cy=y, r=radius, **attributes)

    def path(self, classes, steps, **attributes):
        """A path; steps: SVG's commands and numbers."""
        told = " ".join(number(step) if isinstance(step, (int, float))
                        else step for step in steps)
        self.element("path", classes, d=told, **attributes)

    def arrow(self, classes, steps):
        """A path that ends in a tip."""
        self.path(classes, steps, marker_end="url(#tip)")

    def text(self, classes, x, y, words):
        """Words whose line stands at y."""
        self.lines.append(f'<text class="{classes}" x="{number(x)}" '
                          f'y="{number(y)}">{escape(words)}</text>')

    def svg(self):
        """The whole figure as text."""
        return "\n".join([*self.lines, "</svg>", ""])
