// SPDX-License-Identifier: Apache-2.0
/** brig from JavaScript and TypeScript. */
export * from "./errors.js";
export type {
	FindingEvent, NoticeEvent, OutputEvent, ResultEvent, RunEvent, SampleEvent, StartedEvent,
} from "./events.js";
export { type DownloadOptions, type FileInfo, Files, FileMissing } from "./files.js";
export {
	type AskOptions, check, type CheckOptions, type CheckResult, doctor, history, type HistoryOptions, languages, metrics, policy, show, version,
} from "./host.js";
export type { Contents, HostOptions, RunOptions, SandboxOptions, Trust, Work } from "./options.js";
export {
	Artifact, type Change, type Denied, type Document, type Evidence, type Finding, type NetworkUse, Result, type Sample,
	type Severity, type TestReport, type Usage, type Verdict, type WorkspaceState,
} from "./result.js";
export { run, Sandbox } from "./sandbox.js";
export { type FileChange, type Snapshot, Terminal, type TerminalOptions, Watch } from "./session-parts.js";
export { type Context, Contexts, Session, type SessionExecOptions, SessionFiles, type SessionRunOptions, type ShownEvent } from "./session.js";
export {
	type AnthropicTool, dispatch, type DispatchOptions, type OpenAITool, type ParameterSchema, type ToolName, type ToolResult, toolSchemas,
} from "./tools.js";
