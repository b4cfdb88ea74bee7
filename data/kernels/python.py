# SPDX-License-Identifier: Apache-2.0
# The kernel of Python contexts (src/session/frames.h has the protocol): runs pieces of code in one namespace, shows the value of
# the last expression in every form that it has, and figures of matplotlib where that is installed.  It imports what every
# interpreter has loaded already, and all else when it is needed: a context is there as soon as Python is.
import _ast, builtins, fcntl, os, _signal as signal, sys
from time import process_time_ns

CHANNEL = fcntl.fcntl(3, fcntl.F_DUPFD_CLOEXEC, 64)
os.close(3)
FORMS = (("html", "_repr_html_"), ("markdown", "_repr_markdown_"), ("svg", "_repr_svg_"), ("png", "_repr_png_"),
         ("jpeg", "_repr_jpeg_"), ("pdf", "_repr_pdf_"), ("latex", "_repr_latex_"), ("json", "_repr_json_"),
         ("javascript", "_repr_javascript_"))
MIME = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png",
        "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex", "application/json": "json",
        "application/javascript": "javascript"}
PLAIN = {str, int, float, bool, complex, bytes}  # which have no other form
JSON_MAX = 1 << 20
CHARTS = ""
NOTEBOOK = ""
DISPLAY = ""
IN_LOOP = {"create_task", "ensure_future", "get_running_loop"}  # need a loop that runs
LOOP_OF_ITS_OWN = {"run", "run_until_complete", "run_forever", "Runner"}  # may not be called in another one
ONLY_AST, TOP_LEVEL_AWAIT, COROUTINE = 0x400, 0x2000, 0x80


def take_place():
    """Of a kernel that was started before somebody asked for one: its descriptors come over what is its channel until then."""
    global CHANNEL
    import _socket
    steward = _socket.socket(fileno=CHANNEL)
    steward.send(b"w")
    came = steward.recvmsg(1, _socket.CMSG_SPACE(16))[1]
    if not came:
        os._exit(0)  # nobody has
    steward.close()
    places = memoryview(came[0][2]).cast("i")
    for number in range(3):
        os.dup2(places[number], number)
    CHANNEL = fcntl.fcntl(places[3], fcntl.F_DUPFD_CLOEXEC, 64)
    for place in places:
        os.close(place)


class Channel:
    """Frames over a stream; reading waits."""

    def __init__(self):
        self.rest = b""

    def more(self):
        piece = os.read(CHANNEL, 65536)
        if not piece:
            os._exit(0)  # nobody is there any more
        self.rest += piece

    def line(self):
        while b"\n" not in self.rest:
            self.more()
        line, _, self.rest = self.rest.partition(b"\n")
        name, _, number = line.partition(b" ")
        return name.decode(), int(number)

    def receive(self):
        kind, count = self.line()
        fields = []
        for _ in range(count):
            name, size = self.line()
            while len(self.rest) <= size:
                self.more()
            fields.append((name, self.rest[:size]))
            self.rest = self.rest[size + 1:]
        return kind, fields

    def write(self, data):
        data = memoryview(data)
        while data:
            data = data[os.write(CHANNEL, data):]

    def send(self, kind, fields=()):
        self.write(frame(kind, fields))


def frame(kind, fields=()):
    parts = [b"%s %d\n" % (kind.encode(), len(fields))]
    for name, value in fields:
        if isinstance(value, str):
            value = value.encode("utf-8", "backslashreplace")
        parts += (b"%s %d\n" % (name.encode(), len(value)), value, b"\n")
    return b"".join(parts)


channel = Channel()


def as_base64(value):
    import binascii
    return binascii.b2a_base64(value, newline=False).decode()


def as_text(form, value):
    if isinstance(value, tuple) and value:
        value = value[0]  # (data, metadata)
    if isinstance(value, bytes):
        return as_base64(value)
    if form == "json":
        import json
        return json.dumps(value)
    return value if isinstance(value, str) else None


def bundle_forms(bundle):
    """Of data by media type: forms by their names, and what has none together as "extra"."""
    forms, extra = {}, {}
    for mime, data in bundle.items():
        text = as_text(MIME[mime], data) if mime in MIME else None
        if text is not None:
            forms[MIME[mime]] = text
        elif mime not in MIME and "/" in mime:
            extra[mime] = as_base64(data) if isinstance(data, bytes) else data
    if extra:
        add_document(forms, "extra", lambda: extra)
    return forms


def forms_of(value):
    """Every form that a value has, text first: of a string itself, unless whoever runs the code wants what Python shows."""
    plain = isinstance(value, str) and os.environ.get("BRIG_SHOW") != "repr"
    forms = {"text": value if plain else repr(value)}
    if type(value) in PLAIN:
        return forms
    bundle = getattr(type(value), "_repr_mimebundle_", None)
    if bundle:
        try:
            found = bundle(value)
            found = found[0] if isinstance(found, tuple) else found
            forms.update(bundle_forms(found or {}))
        except Exception:
            pass
    for form, method in FORMS:
        if form in forms or not hasattr(type(value), method):
            continue
        try:
            text = as_text(form, getattr(value, method)())
        except Exception:
            continue
        if text is not None:
            forms[form] = text
    pandas = sys.modules.get("pandas")
    if "json" not in forms and isinstance(value, (dict, list)):
        add_document(forms, "json", lambda: value)
    elif pandas and isinstance(value, getattr(pandas, "DataFrame", ())):
        add_document(forms, "data", lambda: {str(name): column.tolist() for name, column in value.items()})
    return forms


def array_as_plain(value):
    """Of what JSON does not have: arrays and numbers of other libraries."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


def as_plain(value):
    """Of what is in a table: that, moments, and anything else as its text."""
    return value.isoformat() if hasattr(value, "isoformat") else value.tolist() if hasattr(value, "tolist") else str(value)


def without_nan(value):
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        pairs = [(key, without_nan(item)) for key, item in items]
        return dict(pairs) if isinstance(value, dict) else [item for _, item in pairs]
    return None if isinstance(value, float) and value - value != 0 else value


def add_document(forms, form, document):
    try:
        import json
        value = document()
        if form == "data":
            text = json.dumps(without_nan(value), default=as_plain)
        else:
            text = json.dumps(value, allow_nan=False, default=array_as_plain)
        if len(text) <= JSON_MAX:
            forms[form] = text
    except Exception:
        pass  # it is an extra


def show(value, main):
    flush()
    channel.write(result_frame(value, main))


def result_frame(value, main):
    return frame("result", [("main", "1" if main else "0"), *(figure_forms(value) or forms_of(value)).items()])


class DisplayHandle:
    """Of something that is shown and may be shown anew: what was told cannot be taken back, so it is told again."""

    def display(self, value, **options):
        display(value, **options)

    update = display


def display(*values, raw=False, display_id=None, **_):
    for value in values:
        if raw and isinstance(value, dict):
            flush()
            channel.send("result", [("main", "0"), *bundle_forms(value).items()])
        else:
            show(value, False)
    return DisplayHandle() if display_id else None


class StdinNotImplementedError(NotImplementedError):
    pass


def no_input(_prompt=""):
    raise StdinNotImplementedError("input() was called, but nobody can answer here: pass what the code needs as a value or a file")


def figure_forms(value):
    pyplot = sys.modules.get("matplotlib.figure")
    if not pyplot or not isinstance(value, pyplot.Figure):
        return None
    import io
    out = io.BytesIO()
    value.savefig(out, format="png", bbox_inches="tight")
    forms = {"text": repr(value), "png": as_base64(out.getvalue())}
    try:
        chart = chart_names()["chart_text"](value)
        if chart:
            forms["chart"] = chart
    except Exception:
        pass  # it is an extra
    plt = sys.modules.get("matplotlib.pyplot")
    if plt:
        plt.close(value)
    return forms


def chart_names():
    """What charts.py has, which the build puts here as a text; read when it is needed."""
    if not charts:
        exec(compile(CHARTS, "<charts>", "exec"), charts)
    return charts


def show_figures():
    plt = sys.modules.get("matplotlib.pyplot")
    for number in plt.get_fignums() if plt else ():
        show(plt.figure(number), False)


def leave_no_figures(shown):
    """After an error the figures that it left are shown, as a notebook does; the next run begins without any."""
    global interruptible
    try:
        if shown:
            interruptible = True
            show_figures()
    except BaseException:
        pass  # the error has been told
    finally:
        interruptible = False
    try:
        sys.modules["matplotlib.pyplot"].close("all")
    except BaseException:
        pass


class Hooks:
    """Modules that show things are told, when they are imported, where to: IPython prints without a shell of its own, and
    matplotlib's show() warns. A host without IPython has those parts of it that show something."""

    def find_spec(self, name, path=None, _target=None):
        if name not in ("IPython", "IPython.display", "IPython.core.display_functions", "matplotlib.pyplot", "PIL.Image"):
            return None
        from importlib import machinery
        spec = machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return machinery.ModuleSpec(name, self, is_package=name == "IPython") if name.startswith("IPython") else None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if name == "matplotlib.pyplot":
                module.show = lambda *_, **__: show_figures()
                try:
                    chart_names()["watch_boxes"]()
                except Exception:
                    pass  # another version
            elif name == "IPython.core.display_functions":
                module.display = display
            elif name == "PIL.Image":
                show_pictures(module.Image)
        spec.loader.exec_module = exec_module
        return spec

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        exec("from builtins import get_ipython\n" if module.__name__ == "IPython" else DISPLAY, module.__dict__)


def show_pictures(picture):
    """Pictures that are saved by name, or shown, appear: there is no screen. Matplotlib's are figures, which appear by themselves;
    and notebooks that want what Python shows do not show what is saved."""
    save = picture.save

    def save_shown(self, fp, format=None, **options):
        save(self, fp, format, **options)
        is_figure = sys._getframe(1).f_globals.get("__name__", "").startswith("matplotlib")
        if isinstance(fp, (str, os.PathLike)) and not is_figure and os.environ.get("BRIG_SHOW") != "repr":
            show(self, False)
    picture.save = save_shown
    picture.show = lambda self, *_, **__: show(self, False)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass


def tell_error(kind, value, tb, name):
    import traceback
    show_sources()
    # The frames of this file are nobody's business.
    while tb and tb.tb_frame.f_code.co_filename != name:
        tb = tb.tb_next
    at = tb
    while at and at.tb_next:
        if at.tb_next.tb_frame.f_code.co_filename == "<notebook>":
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    text = "".join(traceback.format_exception(kind, value, tb))
    channel.send("error", [("name", kind.__name__), ("value", str(value)), ("traceback", text)])


def show_sources():
    """Lines of tracebacks, and inspect.getsource(), come from there."""
    linecache = sys.modules.get("linecache")
    while linecache and sources:
        name, code = sources.popitem()
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)


def notebook_names():
    """What notebook.py has, which the build puts here as a text; read when code is none of Python's."""
    if not notebook:
        notebook.update(space=space, flush=flush, display=display)
        exec(compile(NOTEBOOK, "<notebook>", "exec"), notebook)
    return notebook


def get_ipython():
    if "shell_" not in notebook_names():
        notebook["shell_"] = notebook["Shell"]()
    return notebook["shell_"]


def parse(code, name):
    """The tree of a piece, and the Python that it was made of."""
    def read(text):
        return compile(text, name, "exec", ONLY_AST | TOP_LEVEL_AWAIT, dont_inherit=True), text
    try:
        return read(code)
    except SyntaxError as error:
        if not isinstance(error, IndentationError) and not any(sign in code for sign in "!%?"):
            raise
    return notebook_names()["as_python"](code, read)


def is_silent(last, code):
    """Of an expression with a semicolon behind it the value is not shown."""
    return code.encode().splitlines()[last.end_lineno - 1][last.end_col_offset:].lstrip().startswith(b";")


def parts_of_lines(code, name):
    """The usual piece, without a tree, which takes longer than all the rest of compiling: an expression on the last line, and what is
    above it. None: it is not one, or that cannot be told so. A bracket, a string, a block or a line that goes on below makes the
    upper text incomplete, and then it does not compile; if both do, the whole is the one and then the other."""
    above, _, last = code.rstrip().rpartition("\n")
    if not last or last[0].isspace() or "\r" in code:
        return None
    try:
        value = compile("\n" * (above.count("\n") + 1) + last if above else last, name, "eval", TOP_LEVEL_AWAIT, dont_inherit=True)
        return [compile(above, name, "exec", TOP_LEVEL_AWAIT, dont_inherit=True), value] if above else [value]
    except SyntaxError:
        return None


def parts_of_tree(code, name):
    tree, text = parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr) and not is_silent(tree.body[-1], text):
        last = _ast.Expression(tree.body.pop().value)
    parts = [(tree, "exec")] if tree.body else []
    parts += [(last, "eval")] if last else []
    return [compile(part, name, mode, TOP_LEVEL_AWAIT, dont_inherit=True) for part, mode in parts]


def needs_loop(compiled):
    """Whether a piece awaits, or makes tasks outside of its functions, as in a notebook, where all code runs in a loop. What calls
    asyncio.run() does not, so that programs work as they do in a file."""
    knows_asyncio = "asyncio" in sys.modules
    for part in compiled:
        if part.co_flags & COROUTINE:
            return True
        knows_asyncio = knows_asyncio or "asyncio" in part.co_names
    if not knows_asyncio:
        return False
    names = {name for part in compiled for name in part.co_names}
    return not names.isdisjoint(IN_LOOP) and names.isdisjoint(LOOP_OF_ITS_OWN)


def execute(code, name):
    sources[name] = code
    show_sources()
    compiled = parts_of_lines(code, name) or parts_of_tree(code, name)
    if needs_loop(compiled):
        return finished(run_awaited, compiled)
    return finished(run_parts, compiled)


def run_parts(compiled):
    value = None
    for part in compiled:
        value = eval(part, space)
    return value


def finished(run, compiled):
    """The value of what is run; magics of the whole piece have the last word of it, however it ends."""
    value = None
    try:
        value = run(compiled)
    finally:
        if "shell_" in notebook:
            value = notebook["shell_"].finish_cell(value)
    return value


def run_awaited(compiled):
    """All of a piece that awaits runs in the loop, so that it may make tasks, too."""
    import asyncio
    global loop

    async def run():
        value = None
        for part in compiled:
            value = eval(part, space)
            if part.co_flags & COROUTINE:
                value = await value
        return value
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    return loop.run_until_complete(run())


def on_interrupt(_signal, _frame):
    """What the code does may be interrupted, once, and nothing else."""
    global interruptible
    if interruptible:
        interruptible = False
        raise KeyboardInterrupt


def used_us():
    """Cpu time of this process and of the children that it has waited for."""
    used = os.times()
    return int((used[2] + used[3]) * 1e6) + process_time_ns() // 1000


def serve(code, env, number):
    """What is still to be told: the value of the last expression goes with the word that the run has ended, so that nobody is woken up
    for either alone."""
    name = f"<cell {number}>"
    before, last = {}, b""
    for key, value in env:
        before[key] = os.environ.get(key)
        os.environ[key] = value
    global interruptible
    try:
        if signal.getsignal(signal.SIGINT) is not on_interrupt:
            signal.signal(signal.SIGINT, on_interrupt)
        interruptible = True
        try:
            value = execute(code, name)
            if value is not None:
                space["_"] = value
                last = result_frame(value, True)
            if "matplotlib.pyplot" in sys.modules:
                flush()
                channel.write(last)
                last = b""
                show_figures()
        finally:
            interruptible = False
    except BaseException:
        flush()
        channel.write(last)
        last = b""
        kind = sys.exc_info()[0]
        tell_error(*sys.exc_info(), name)
        if "matplotlib.pyplot" in sys.modules:
            leave_no_figures(kind is not KeyboardInterrupt)
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
    flush()
    return last


def get_ready():
    """Code is on its way and is being inspected: when it comes, what it takes to run it is in the cpu's caches."""
    try:
        names = {"__builtins__": builtins}
        for part in parts_of_lines("a = sum(n for n in (1, 2))\na", "<ready>"):
            eval(part, names)
        result_frame(1, True)
        used_us()
    except BaseException:
        pass  # what earlier code has put in place of these is its own business


interruptible = False
signal.signal(signal.SIGINT, on_interrupt)
os.environ.setdefault("MPLBACKEND", "Agg")
sys.stdout.reconfigure(line_buffering=True)
sources, charts, notebook = {}, {}, {}
module = type(sys)("__main__")
space = module.__dict__
space["__builtins__"] = builtins
sys.modules["__main__"] = module
is_spare, sys.argv = len(sys.argv) > 1, [""]
builtins.display = display
builtins.input = no_input
builtins.get_ipython = get_ipython
sys.meta_path.insert(0, Hooks())
loop = None
if is_spare:
    take_place()
channel.send("ready")
count = 0
while True:
    kind, fields = channel.receive()
    if kind != "run":
        get_ready()
        continue
    count += 1
    used = used_us()
    env = [field[1].decode("utf-8", "surrogateescape").partition("=")[::2] for field in fields if field[0] == "env"]
    source = b"".join(field[1] for field in fields if field[0] == "code")
    last = serve(source.decode("utf-8", "replace"), env, count)
    channel.write(last + frame("done", [("cpu", str(used_us() - used))]))
