# SPDX-License-Identifier: Apache-2.0
# IPython.display for hosts without IPython: what shows something.  The kernel of Python contexts has this file as a text
# (tools/join-kernel) and reads it when that module is imported.
import html, os
from builtins import display


class Shown:
    """A text, or a file's, in one form."""
    form = None

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_):
        self.filename, self.url, self.metadata = filename, url, metadata
        self.data = self.read(filename) if filename is not None else data

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def _repr_mimebundle_(self, **_):
        return {self.form: self.data} if self.data is not None else {}


class HTML(Shown):
    form = "text/html"


class Markdown(Shown):
    form = "text/markdown"


class SVG(Shown):
    form = "image/svg+xml"


class Latex(Shown):
    form = "text/latex"


class Math(Shown):
    form = "text/latex"

    def _repr_mimebundle_(self, **_):
        return {self.form: f"$\\displaystyle {self.data.strip('$')}$"}


class JSON(Shown):
    form = "application/json"

    def read(self, path):
        import json
        return json.loads(super().read(path))


class Javascript(Shown):
    form = "application/javascript"


class Pretty(Shown):
    form = "text/plain"


class Image(Shown):
    """Bytes of a picture, a file or an address, which nothing is fetched from."""

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, **_):
        self.width, self.height = width, height
        if isinstance(data, str) and data.startswith(("http://", "https://")):
            data, url = None, data
        elif isinstance(data, (str, os.PathLike)):
            data, filename = None, data
        super().__init__(data, url, filename)

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def _repr_mimebundle_(self, **_):
        if self.data is None:
            return {"text/html": f'<img src="{html.escape(self.url or "")}"/>'}
        for start, form in ((b"\x89PNG", "image/png"), (b"\xff\xd8", "image/jpeg"), (b"<svg", "image/svg+xml"), (b"<?xml", "image/svg+xml")):
            if self.data.startswith(start):
                return {form: self.data.decode() if "svg" in form else self.data}
        import base64
        kind = "gif" if self.data.startswith(b"GIF8") else "webp" if self.data[8:12] == b"WEBP" else "png"
        return {"text/html": f'<img src="data:image/{kind};base64,{base64.b64encode(self.data).decode()}"/>'}


class IFrame(Shown):
    def __init__(self, src, width="100%", height=150, **_):
        self.src, self.width, self.height = src, width, height

    def _repr_mimebundle_(self, **_):
        return {"text/html": f'<iframe width="{self.width}" height="{self.height}" src="{html.escape(self.src)}" frameborder="0" allowfullscreen></iframe>'}


class FileLink(Shown):
    def __init__(self, path, **_):
        self.path = path

    def __repr__(self):
        return str(self.path)

    def _repr_mimebundle_(self, **_):
        return {}


def shower(form):
    return lambda *values, raw=False, **_: [display({form: value} if raw else value, raw=raw) for value in values] and None


display_html, display_markdown, display_svg, display_json = map(shower, ("text/html", "text/markdown", "image/svg+xml", "application/json"))
display_png, display_jpeg, display_latex, display_javascript = map(shower, ("image/png", "image/jpeg", "text/latex", "application/javascript"))
display_pretty = shower("text/plain")
DisplayObject, FileLinks = Shown, FileLink


def clear_output(wait=False):
    """What was told cannot be taken back."""


def update_display(value, *, display_id=None, **_):
    display(value)
