# SPDX-License-Identifier: Apache-2.0
# What a figure of matplotlib shows, as data: the form "chart" of a result.  The kernel of Python contexts has this file as a text
# (tools/join-kernel) and reads it when matplotlib.pyplot is imported: until then it costs nothing.
#
# A chart has a type, a title and elements; one with several axes is a superchart whose elements are theirs.  The artists of the axes
# are looked at, as drawn.  What is drawn otherwise is of the type "unknown", and what is too much for a result has no chart.
import functools, json, math, re

TEXT_MAX, POINTS_MAX, AXES_MAX = 1 << 17, 5000, 64


def watch_boxes():
    """Of boxes the axes keep nothing but lines: what they were drawn from is kept besides."""
    from matplotlib.axes import Axes
    draw = Axes.bxp

    @functools.wraps(draw)
    def bxp(self, bxpstats, *args, **options):
        made = draw(self, bxpstats, *args, **options)
        self._brig_boxes = getattr(self, "_brig_boxes", []) + list(zip(bxpstats, made["medians"]))
        return made
    Axes.bxp = bxp


def converter_of(axis):
    return type(axis.get_converter() if hasattr(axis, "get_converter") else getattr(axis, "converter", None)).__name__


def scale_of(axis):
    converter = converter_of(axis)
    return "categorical" if converter == "StrCategoryConverter" else "datetime" if "Date" in converter else axis.get_scale()


def plain(value):
    """A number as people write it: beyond what a float has whole, it is none of theirs."""
    value = float(value)
    return None if not math.isfinite(value) else int(value) if value.is_integer() and abs(value) < 1 << 53 else value


def on_axis(axis, values):
    """Places as their axis has them: names, moments or numbers."""
    scale = scale_of(axis)
    if scale == "categorical":
        names = {place: name for name, place in axis.units._mapping.items()}
        return [names.get(plain(value), plain(value)) for value in values]
    if scale == "datetime":
        from matplotlib.dates import num2date
        return [num2date(value).isoformat() if math.isfinite(value) else None for value in values]
    return [plain(value) for value in values]


def label_of(axis, place):
    """Of a bar: the tick that is meant, where ticks have names."""
    if scale_of(axis) == "categorical" or type(axis.get_major_locator()).__name__ == "FixedLocator":
        ticks = [(abs(at - place), tick.get_text()) for at, tick in zip(axis.get_ticklocs(), axis.get_ticklabels())]
        if ticks and min(ticks)[0] < 0.5:
            return min(ticks)[1]
    return str(on_axis(axis, [place])[0])


def named(artist, kind, number):
    label = str(artist.get_label())
    return f"{kind} {number}" if label.startswith("_") or not label else label


def points(axes, label, xs, ys):
    return {"label": label, "points": [list(pair) for pair in zip(on_axis(axes.xaxis, xs), on_axis(axes.yaxis, ys))]}


def line_elements(axes):
    return [points(axes, named(line, "Line", number), *line.get_data(orig=False)) for number, line in enumerate(axes.lines)]


def scatter_elements(axes):
    from matplotlib.collections import PathCollection
    clouds = [cloud for cloud in axes.collections if isinstance(cloud, PathCollection)]
    return [points(axes, named(cloud, "Dataset", number), *zip(*cloud.get_offsets().tolist())) for number, cloud in enumerate(clouds)
            if len(cloud.get_offsets())]


def bar_elements(axes):
    from matplotlib.container import BarContainer
    elements = []
    for number, bars in enumerate(part for part in axes.containers if isinstance(part, BarContainer)):
        is_flat = bars.orientation == "horizontal"
        for bar in bars:
            place = bar.get_y() + bar.get_height() / 2 if is_flat else bar.get_x() + bar.get_width() / 2
            elements.append({"label": label_of(axes.yaxis if is_flat else axes.xaxis, place),
                             "value": plain(bar.get_width() if is_flat else bar.get_height()), "group": named(bars, "Group", number)})
    return elements


def pie_elements(axes):
    from matplotlib.patches import Wedge
    return [{"label": named(wedge, "Wedge", number), "angle": plain(round(wedge.theta2 - wedge.theta1, 4)), "radius": plain(wedge.r)}
            for number, wedge in enumerate(patch for patch in axes.patches if isinstance(patch, Wedge))]


def box_elements(axes):
    lines = set(axes.lines)
    boxes = [box for box, median in getattr(axes, "_brig_boxes", ()) if median in lines]
    return [{"label": str(box.get("label", number)), "min": plain(box["whislo"]), "first_quartile": plain(box["q1"]),
             "median": plain(box["med"]), "third_quartile": plain(box["q3"]), "max": plain(box["whishi"]),
             "outliers": [plain(value) for value in box.get("fliers", ())]} for number, box in enumerate(boxes, 1)]


# The first that finds something is what the axes show; scatter before line, for a cloud often has a line through it.
TYPES = (("pie", pie_elements), ("box_and_whisker", box_elements), ("bar", bar_elements), ("scatter", scatter_elements),
         ("line", line_elements))


def unit_of(label):
    found = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", label)
    return found.group(1) if found else None


def add_axis(chart, name, axis, has_ticks):
    label = axis.get_label_text()
    chart.update({f"{name}_label": label or None, f"{name}_unit": unit_of(label)})
    if has_ticks:
        chart.update({f"{name}_ticks": on_axis(axis, axis.get_ticklocs()), f"{name}_scale": scale_of(axis),
                      f"{name}_tick_labels": [tick.get_text() for tick in axis.get_ticklabels()]})


def axes_chart(axes):
    kind, elements = "unknown", []
    for name, find in TYPES if axes.name == "rectilinear" else ():
        elements = find(axes)
        if elements:
            kind = name
            break
    chart = {"type": kind, "title": axes.get_title() or None, "elements": elements}
    if kind not in ("pie", "unknown"):
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            add_axis(chart, name, axis, kind in ("line", "scatter"))
    return chart


def weight(axes):
    return (sum(len(line.get_xdata(orig=False)) for line in axes.lines) + len(axes.patches) +
            sum(len(cloud.get_offsets()) for cloud in axes.collections))


def chart_text(figure):
    """The chart of a figure as JSON; None: it has none."""
    shown = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    if not shown or len(shown) > AXES_MAX or sum(map(weight, shown)) > POINTS_MAX:
        return None
    title = figure._suptitle.get_text() if figure._suptitle else None
    charts = [axes_chart(axes) for axes in shown]
    chart = charts[0] if len(charts) == 1 else {"type": "superchart", "title": title, "elements": charts}
    chart["title"] = chart["title"] or title
    text = json.dumps(chart, allow_nan=False)
    return text if len(text) <= TEXT_MAX else None
