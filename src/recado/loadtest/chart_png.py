"""The plot of a load test as a PNG. It needs Pillow, which comes with `recado[png]` only."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

from PIL import Image, ImageDraw, ImageFont

from recado.loadtest.chart import HEIGHT, WIDTH, ChartBox, ChartLine, ChartText, chart

_SCALE: Final = 2  # pixels of a point
_FINER: Final = 2  # drawn so much larger, and made smaller: lines have no stairs then
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}


def png_report(report: Mapping[str, Any]) -> bytes:
    """The picture of a report, as `as_json` makes it."""
    scale = _SCALE * _FINER
    image = Image.new("RGB", (WIDTH * scale, HEIGHT * scale), "#ffffff")
    draw = ImageDraw.Draw(image)
    for mark in chart(report):
        match mark:
            case ChartBox():
                right, below = (mark.x + mark.width) * scale, (mark.y + mark.height) * scale
                draw.rectangle((mark.x * scale, mark.y * scale, right, below), fill=mark.color)
            case ChartLine():
                points = [(x * scale, y * scale) for x, y in mark.points]
                draw.line(points, fill=mark.color, width=round(mark.width * scale), joint="curve")
            case ChartText():
                font = ImageFont.load_default(mark.size * scale)
                at = (mark.x * scale, mark.y * scale)
                draw.text(at, mark.text, fill=mark.color, font=font, anchor=_ANCHORS[mark.anchor])
    content = BytesIO()
    image.reduce(_FINER).save(content, "PNG", optimize=True)
    return content.getvalue()
