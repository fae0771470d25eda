export const LOG_LEVELS = ["debug", "info", "warning", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogEventLevel = Exclude<LogLevel, "silent">;

/** A function is called only when the level is logged, so a costly text costs nothing when it is off. */
export type LogText = string | (() => string);

/** Texts are one line and never hold a secret. */
export interface Log {
  debug(text: LogText): void;
  info(text: LogText): void;
  warning(text: LogText): void;
  error(text: LogText): void;
}

export interface LogEvent {
  readonly level: LogEventLevel;
  readonly text: string;
  readonly atMs: number;
}

export const SILENT: Log = { debug() {}, info() {}, warning() {}, error() {} };
