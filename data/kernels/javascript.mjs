// SPDX-License-Identifier: Apache-2.0
// The kernel of JavaScript contexts (src/session/frames.h has the protocol): scripts that share one global scope.
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { inspect } from 'node:util';
import vm from 'node:vm';

const channel = new Socket({ fd: 3, readable: true, writable: true });
globalThis.require = createRequire(process.cwd() + '/');
let interrupt = null;
process.on('SIGINT', () => interrupt?.());
process.on('uncaughtException', (error) => (pending ? pending(error) : console.error(error)));
process.on('unhandledRejection', (error) => (pending ? pending(error) : console.error(error)));
let pending = null;

function send(kind, fields = []) {
  const parts = [Buffer.from(`${kind} ${fields.length}\n`)];
  for (const [name, value] of fields) {
    const bytes = Buffer.from(String(value));
    parts.push(Buffer.from(`${name} ${bytes.length}\n`), bytes, Buffer.from('\n'));
  }
  channel.write(Buffer.concat(parts));
}

const MIME = { 'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'image/svg+xml': 'svg',
  'image/png': 'png', 'image/jpeg': 'jpeg', 'application/pdf': 'pdf', 'text/latex': 'latex', 'application/json': 'json',
  'application/javascript': 'javascript' };

function formsOf(value) {
  const forms = new Map([['text', typeof value === 'string' ? value : inspect(value)]]);
  if (value !== null && typeof value === 'object' && !(value instanceof Error)) {
    try {
      const text = JSON.stringify(value);
      if (text !== undefined && text.length <= 1 << 20) forms.set('json', text);
    } catch { /* it has cycles */ }
  }
  return forms;
}

function show(forms, main) {
  send('result', [['main', main ? '1' : '0'], ...forms]);
}

// A value, or an object of forms by their media types.
globalThis.display = (value) => {
  const keys = value !== null && typeof value === 'object' ? Object.keys(value) : [];
  if (keys.length && keys.every((key) => key in MIME)) {
    show(new Map(keys.map((key) => [MIME[key], typeof value[key] === 'string' ? value[key] : JSON.stringify(value[key])])), false);
  } else show(formsOf(value), false);
};

const LOADER = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;

function runScript(code, filename) {
  return vm.runInThisContext(code, { filename, breakOnSigint: true, importModuleDynamically: LOADER });
}

// A script has no await and no import: the same code as the body of an async function, whose declarations become global.
function wrapped(code) {
  const body = code
    .replace(/^import\s+\*\s+as\s+([\w$]+)\s+from\s+(['"][^'"]+['"]);?/gm, 'globalThis.$1 = await import($2);')
    .replace(/^import\s+([\w$]+)\s+from\s+(['"][^'"]+['"]);?/gm, 'globalThis.$1 = (await import($2)).default;')
    .replace(/^import\s+\{([^}]*)\}\s+from\s+(['"][^'"]+['"]);?/gm,
      (_, names, from) => `Object.assign(globalThis, (({${names.replace(/\bas\b/g, ':')}}) => ({${names.replace(/[\w$]+\s+as\s+/g, '')}}))(await import(${from})));`)
    .replace(/^import\s+(['"][^'"]+['"]);?/gm, 'await import($1);')
    .replace(/^(?:const|let|var)\s+([\w$]+)\s*=/gm, 'globalThis.$1 =')
    .replace(/^(async\s+function\*?|function\*?|class)\s+([\w$]+)/gm, 'globalThis.$2 = $1 $2');
  const lines = body.trimEnd().split('\n');
  const last = lines.pop();
  const tries = [`(async () => {\n${lines.join('\n')}\nreturn (${last.replace(/;\s*$/, '')}\n);\n})()`, `(async () => {\n${body}\n})()`];
  for (const text of tries) {
    try {
      new vm.Script(text);
      return text;
    } catch { /* the last line is no expression */ }
  }
  return tries[1];
}

async function execute(code, filename) {
  try {
    new vm.Script(code, { filename });
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/\b(await|import)\b/.test(code)) throw error;
    return await runScript(wrapped(code), filename);
  }
  const value = runScript(code, filename);
  return value instanceof Promise ? await value : value;
}

async function serve(code, env, number) {
  const before = new Map(env.map(([key]) => [key, process.env[key]]));
  for (const [key, value] of env) process.env[key] = value;
  try {
    const stopped = new Promise((_, reject) => {
      interrupt = () => reject(Object.assign(new Error('Script execution was interrupted by `SIGINT`'), { name: 'Interrupted' }));
      pending = reject;
    });
    const value = await Promise.race([execute(code, `<cell ${number}>`), stopped]);
    if (value !== undefined) {
      globalThis._ = value;
      show(formsOf(value), true);
    }
  } catch (error) {
    const known = error !== null && typeof error === 'object';
    send('error', [['name', known ? error.name ?? 'Error' : 'Error'], ['value', known ? error.message ?? String(error) : String(error)],
      ['traceback', known ? error.stack ?? String(error) : String(error)]]);
  } finally {
    interrupt = pending = null;
    for (const [key, value] of before) {
      if (value === undefined) delete process.env[key];
      else process.env[key] = value;
    }
  }
}

let rest = Buffer.alloc(0);

// One frame of what has come, or null.
function take() {
  let at = 0;
  const line = () => {
    const end = rest.indexOf(10, at);
    if (end < 0) return null;
    const [name, number] = rest.toString('latin1', at, end).split(' ');
    at = end + 1;
    return [name, Number(number)];
  };
  const head = line();
  if (!head) return null;
  const fields = [];
  for (let i = 0; i < head[1]; i++) {
    const field = line();
    if (!field || rest.length <= at + field[1]) return null;
    fields.push([field[0], rest.toString('utf8', at, at + field[1])]);
    at += field[1] + 1;
  }
  rest = rest.subarray(at);
  return { kind: head[0], fields };
}

let count = 0, busy = false;
async function go() {
  if (busy) return;
  busy = true;
  for (let frame; (frame = take());) {
    if (frame.kind !== 'run') continue;
    const env = frame.fields.filter(([name]) => name === 'env').map(([, text]) => [text.split('=', 1)[0], text.slice(text.indexOf('=') + 1)]);
    await serve(frame.fields.filter(([name]) => name === 'code').map(([, text]) => text).join(''), env, ++count);
    send('done');
  }
  busy = false;
}
channel.on('data', (piece) => {
  rest = Buffer.concat([rest, piece]);
  go();
});
channel.on('close', () => process.exit(0));
send('ready');
