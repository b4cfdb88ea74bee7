// SPDX-License-Identifier: Apache-2.0
// The kernel of JavaScript and TypeScript contexts (src/session/frames.h has the protocol).
//
// Pieces are scripts of one global scope.  What a script does not have is rewritten by position before: declarations of the top
// level become global variables, so that a later piece may declare them again; a piece with await or import at its top level
// becomes the body of an async function.  Types are removed by esbuild, which the cell shows; they are not checked.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { inspect } from 'node:util';
import vm from 'node:vm';

const channel = new Socket({ fd: 3, readable: true, writable: true });
const require = createRequire(process.cwd() + '/');
globalThis.require = require;
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

// ---- code as a script takes it ---------------------------------------------------------------------------------

let parser;

// Node's own parser, which its flag --expose-internals shows; null: this Node has none there.
function acorn() {
  try {
    parser ??= { ...require('internal/deps/acorn/acorn/dist/acorn'), ...require('internal/deps/acorn/acorn-walk/dist/walk') };
  } catch {
    parser = null;
  }
  return parser;
}

function isAwaited(tools, tree) {
  const state = { found: tree.body.some((node) => node.type === 'ImportDeclaration') };
  tools.recursive(tree, state, {
    Function() {},
    AwaitExpression() { state.found = true; },
    ForOfStatement(node, st, go) {
      st.found ||= node.await;
      tools.base.ForOfStatement(node, st, go);
    },
  });
  return state.found;
}

function namesOf(pattern) {
  switch (pattern?.type) {
  case 'Identifier': return [pattern.name];
  case 'ObjectPattern': return pattern.properties.flatMap((p) => namesOf(p.value ?? p.argument));
  case 'ArrayPattern': return pattern.elements.flatMap(namesOf);
  case 'AssignmentPattern': return namesOf(pattern.left);
  case 'RestElement': return namesOf(pattern.argument);
  default: return [];
  }
}

function importText(node, code, names) {
  const from = `await import(${code.slice(node.source.start, node.source.end)})`;
  const parts = [];
  for (const s of node.specifiers) {
    const what = s.type === 'ImportNamespaceSpecifier' ? '' : s.type === 'ImportDefaultSpecifier' ? '.default'
      : `[${JSON.stringify(s.imported.name ?? s.imported.value)}]`;
    names.push(s.local.name);
    parts.push(`${s.local.name} = (${from})${what};`);
  }
  return `;${parts.join(' ') || `${from};`}`;
}

// Declarations of the top level become variables of the global object, which the next piece sees and may declare again: of a
// script by var, of the body of an async function by assignments.
function editStatement(node, code, edits, names, isAsync) {
  if (node.type === 'ImportDeclaration') {
    edits.push([node.start, node.end, importText(node, code, names)]);
  } else if (node.type.startsWith('Export')) {
    const what = node.declaration;
    edits.push([node.start, what ? what.start : node.end, what ? ';' : '']);
    if (what && /Declaration$/.test(what.type) && (what.id || what.declarations)) editStatement(what, code, edits, names, isAsync);
    else if (what) edits.push([what.start, what.start, '('], [what.end, what.end, ')']);
  } else if (node.type === 'ClassDeclaration') {
    names.push(node.id.name);
    edits.push([node.start, node.start, `${isAsync ? '' : 'var '}${node.id.name} = `], [node.end, node.end, ';']);
  } else if (node.type === 'FunctionDeclaration' && isAsync) {
    names.push(node.id.name);
    edits.push([0, 0, `globalThis.${node.id.name} = ${node.id.name};`]);
  } else if (node.type === 'VariableDeclaration' && !isAsync) {
    edits.push([node.start, node.start + node.kind.length, 'var']);
  } else if (node.type === 'VariableDeclaration') {
    const last = node.declarations.at(-1);
    edits.push([node.start, node.declarations[0].start, ';void (']);
    for (const d of node.declarations) {
      names.push(...namesOf(d.id));
      edits.push([d.start, d.start, '('], [d.end, d.end, d.init ? ')' : ' = undefined)']);
    }
    edits.push([last.end, node.end, ');']);
  }
}

// The text of a script; what cannot be read stays as it is, and the engine says what is wrong with it.
function asScript(code) {
  const tools = acorn(), edits = [], names = [];
  let tree;
  try {
    tree = tools.parse(code, { ecmaVersion: 'latest', sourceType: 'module', allowAwaitOutsideFunction: true });
  } catch {
    return code;
  }
  const isAsync = isAwaited(tools, tree), last = tree.body.at(-1);
  for (const node of tree.body) editStatement(node, code, edits, names, isAsync);
  if (isAsync && last?.type === 'ExpressionStatement') {
    edits.push([last.start, last.expression.start, ';return (' + code.slice(last.start, last.expression.start)]);
    edits.push([last.expression.end, last.end, code.slice(last.expression.end, last.end).replace(/;\s*$/, '') + '\n);']);
  }
  tools.simple(tree, { MetaProperty: (node) => node.meta.name === 'import' && edits.push([node.start, node.end, META]) });
  // Of those at one place the later are inserted behind the earlier.
  let out = '', at = 0;
  for (const [from, to, text] of edits.map((e, i) => [...e, i]).sort((x, y) => x[0] - y[0] || x[1] - y[1] || x[3] - y[3])) {
    out += code.slice(at, from) + text;
    at = Math.max(at, to);
  }
  out += code.slice(at);
  if (!isAsync) return out;
  return `${names.length ? `var ${names.join(', ')};` : ''}(async () => {${out}\n})()`;
}

const META = JSON.stringify({ dirname: process.cwd(), filename: `${process.cwd()}/cell.mjs`, url: `file://${process.cwd()}/cell.mjs` });

// A piece that is one object is no block.
function asExpression(code) {
  if (!/^\s*\{[\s\S]*\}\s*$/.test(code)) return code;
  try {
    new vm.Script(`(${code}\n)`);
    return `(${code}\n)`;
  } catch {
    return code;
  }
}

const ESBUILD = ['/opt/brig/esbuild', '/usr/bin/esbuild', '/usr/local/bin/esbuild', 'esbuild'];
const TYPES = JSON.stringify({ compilerOptions: { verbatimModuleSyntax: true, experimentalDecorators: true, target: 'esnext' } });

function withoutTypes(code) {
  for (const program of ESBUILD) {
    const made = spawnSync(program, ['--loader=ts', '--log-level=error', '--color=false', `--tsconfig-raw=${TYPES}`],
      { input: code, maxBuffer: 64 << 20 });
    if (made.error?.code === 'ENOENT') continue;
    if (made.error) throw made.error;
    if (made.status === 0) return made.stdout.toString();
    const text = made.stderr.toString().trim();
    throw Object.assign(new SyntaxError(text.split('\n', 1)[0].replace(/^\S+ \[ERROR\] /, '')), { stack: text || 'esbuild was stopped' });
  }
  throw new Error('esbuild, which removes the types of TypeScript, is not installed on this host');
}

// ---- runs --------------------------------------------------------------------------------------------------------

// It resolves names as a file in the folder of the context would, which is why pieces have a folder; errors do not show it.
const LOADER = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
const FOLDER = `${process.cwd()}/`;
const { emitWarning } = process;
process.emitWarning = (warning, ...rest) => {
  if (!/^vm\.USE_MAIN_CONTEXT_DEFAULT_LOADER /.test(warning)) emitWarning.call(process, warning, ...rest);
};

async function execute(code, filename, language) {
  const plain = language === 'typescript' ? withoutTypes(code) : code;
  const value = vm.runInThisContext(asScript(asExpression(plain)), { filename: FOLDER + filename, breakOnSigint: true, importModuleDynamically: LOADER });
  return value instanceof Promise ? await value : value;
}

// The frames of this file are nobody's business.
function stackOf(error) {
  const lines = String(error.stack ?? error).replaceAll(`${FOLDER}cell-`, 'cell-').split('\n');
  const own = lines.findIndex((line) => /^\s+at .*(node:vm:|\[eval1\])/.test(line));
  return (own < 0 ? lines : lines.slice(0, own)).join('\n');
}

async function serve(code, env, number, language) {
  const before = new Map(env.map(([key]) => [key, process.env[key]]));
  for (const [key, value] of env) process.env[key] = value;
  try {
    const stopped = new Promise((_, reject) => {
      interrupt = () => reject(Object.assign(new Error('Script execution was interrupted by `SIGINT`'), { stack: 'Script execution was interrupted by `SIGINT`' }));
      pending = reject;
    });
    const value = await Promise.race([execute(code, `cell-${number}`, language), stopped]);
    if (value !== undefined) {
      globalThis._ = value;
      show(formsOf(value), true);
    }
  } catch (error) {
    const known = error !== null && typeof error === 'object';
    send('error', [['name', known ? error.name ?? 'Error' : 'Error'], ['value', known ? error.message ?? String(error) : String(error)],
      ['traceback', known ? stackOf(error) : String(error)]]);
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
    const text = (wanted) => frame.fields.filter(([name]) => name === wanted).map(([, value]) => value).join('');
    await serve(text('code'), env, ++count, text('language'));
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
